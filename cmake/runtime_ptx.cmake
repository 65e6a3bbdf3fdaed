# src/runtime for NVIDIA GPUs: kernels_nvptx.cpp, the one translation unit, as PTX for the CUDA
# driver to assemble (one file a variant) and as bitcode. The library runtime_ptx carries the PTX
# inside the binary (device/runtime_ptx.h).
set(kernels ${PROJECT_SOURCE_DIR}/src/runtime/kernels_nvptx.cpp)

# Guest memory holds values of every type at any address, so no rule of C++ about the types of
# accesses may be used: a store of one type changes what a load of another type reads.
set(guest_memory_flags -fno-strict-aliasing)

# A PTX version that every driver since CUDA 11.0 reads.
set(nvptx_flags --target=nvptx64-nvidia-cuda --cuda-feature=+ptx70 -nogpulib
    -ffreestanding -fno-exceptions -fno-rtti -std=gnu++20 -O3 -ffp-contract=off ${guest_memory_flags}
    -Wall -Wextra -Werror -Wshadow -Wno-gnu-statement-expression -I${PROJECT_SOURCE_DIR}/src)

function(nvptx_compile_file source output)
  add_custom_command(
    OUTPUT ${output}
    # All builds make the same ones: the compiler cache knows them.
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER} ${nvptx_flags} ${ARGN}
            -MD -MF ${output}.d -MT ${output} ${source} -o ${output}
    DEPENDS ${source}
    DEPFILE ${output}.d
    COMMENT "Compiling src/runtime for nvptx64 into ${output}"
    VERBATIM)
endfunction()
function(nvptx_compile output)
  nvptx_compile_file(${kernels} ${output} ${ARGN})
endfunction()

# The floor is compute capability 7.5; from 8.0 on there is redux.
set(PTX_GANG_75 ${PROJECT_BINARY_DIR}/gang_75.ptx)
set(PTX_GANG_80 ${PROJECT_BINARY_DIR}/gang_80.ptx)
set(PTX_DEEP_75 ${PROJECT_BINARY_DIR}/deep_75.ptx)
set(PTX_SOLO_75 ${PROJECT_BINARY_DIR}/solo_75.ptx)
set(PTX_SOLO_DEEP_75 ${PROJECT_BINARY_DIR}/solo_deep_75.ptx)
set(PTX_RESIDENT_75 ${PROJECT_BINARY_DIR}/resident_75.ptx)
set(PTX_RESIDENT_80 ${PROJECT_BINARY_DIR}/resident_80.ptx)
set(PTX_NATIVE_GANG_75 ${PROJECT_BINARY_DIR}/native_gang_75.ptx)
set(PTX_NATIVE_SOLO_75 ${PROJECT_BINARY_DIR}/native_solo_75.ptx)
set(RUNTIME_BITCODE ${PROJECT_BINARY_DIR}/runtime_nvptx.bc)
nvptx_compile(${PTX_GANG_75} -march=sm_75 -DGPURUN_LOCAL_STACK=1 -S)
nvptx_compile(${PTX_GANG_80} -march=sm_80 -DGPURUN_LOCAL_STACK=1 -DGPURUN_HAS_REDUX=1 -S)
nvptx_compile(${PTX_DEEP_75} -march=sm_75 -S)
nvptx_compile(${PTX_SOLO_75} -march=sm_75 -DGPURUN_SOLO=1 -DGPURUN_WINDOW=1 -S)
nvptx_compile(${PTX_SOLO_DEEP_75} -march=sm_75 -DGPURUN_SOLO=1 -S)
nvptx_compile(${PTX_RESIDENT_75} -march=sm_75 -DGPURUN_LOCAL_STACK=1 -DGPURUN_RESIDENT=1 -S)
nvptx_compile(${PTX_RESIDENT_80} -march=sm_80 -DGPURUN_LOCAL_STACK=1 -DGPURUN_HAS_REDUX=1
              -DGPURUN_RESIDENT=1 -S)
nvptx_compile(${PTX_NATIVE_GANG_75} -march=sm_75 -DGPURUN_NATIVE=1 -S)
nvptx_compile(${PTX_NATIVE_SOLO_75} -march=sm_75 -DGPURUN_NATIVE=1 -DGPURUN_SOLO=1 -S)
nvptx_compile(${RUNTIME_BITCODE} -march=sm_75 -c -emit-llvm)
set(ptx_files ${PTX_GANG_75} ${PTX_GANG_80} ${PTX_DEEP_75} ${PTX_SOLO_75}
    ${PTX_SOLO_DEEP_75} ${PTX_RESIDENT_75} ${PTX_RESIDENT_80} ${PTX_NATIVE_GANG_75}
    ${PTX_NATIVE_SOLO_75})
add_custom_target(runtime_nvptx ALL DEPENDS ${ptx_files} ${RUNTIME_BITCODE})

configure_file(${PROJECT_SOURCE_DIR}/cmake/runtime_ptx.cpp.in runtime_ptx.cpp @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/runtime_ptx.cpp PROPERTIES
                            OBJECT_DEPENDS "${ptx_files}")
add_library(runtime_ptx STATIC ${PROJECT_BINARY_DIR}/runtime_ptx.cpp)
target_include_directories(runtime_ptx PRIVATE ${PROJECT_SOURCE_DIR}/src)
add_dependencies(runtime_ptx runtime_nvptx)
