# src/runtime for NVIDIA GPUs: bitcode (runtime_nvptx.bc) and PTX (runtime_nvptx.ptx), and the
# library runtime_ptx that carries the PTX inside the binary (device/runtime_ptx.h).
# kernels_nvptx.cpp is the one translation unit: it includes what the device needs.
set(RUNTIME_PTX ${PROJECT_BINARY_DIR}/runtime_nvptx.ptx)
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/runtime/kernels_nvptx.cpp)
if(NOT kernels)
  add_library(runtime_ptx INTERFACE)
  return()
endif()

# The floor: compute capability 7.5, and a PTX version that every driver since CUDA 11.0 reads.
set(nvptx_flags --target=nvptx64-nvidia-cuda -march=sm_75 --cuda-feature=+ptx70 -nogpulib
    -ffreestanding -fno-exceptions -fno-rtti -std=gnu++20 -O3 -ffp-contract=off
    -Wall -Wextra -Werror -Wshadow -Wno-gnu-statement-expression -I${PROJECT_SOURCE_DIR}/src)

function(nvptx_compile output)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_CXX_COMPILER} ${nvptx_flags} ${ARGN} -MD -MF ${output}.d -MT ${output}
            ${kernels} -o ${output}
    DEPENDS ${kernels}
    DEPFILE ${output}.d
    COMMENT "Compiling src/runtime for nvptx64 into ${output}"
    VERBATIM)
endfunction()
nvptx_compile(${RUNTIME_PTX} -S)
nvptx_compile(${PROJECT_BINARY_DIR}/runtime_nvptx.bc -c -emit-llvm)
add_custom_target(runtime_nvptx ALL DEPENDS ${RUNTIME_PTX} ${PROJECT_BINARY_DIR}/runtime_nvptx.bc)

configure_file(${PROJECT_SOURCE_DIR}/cmake/runtime_ptx.cpp.in runtime_ptx.cpp @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/runtime_ptx.cpp PROPERTIES
                            OBJECT_DEPENDS ${RUNTIME_PTX})
add_library(runtime_ptx STATIC ${PROJECT_BINARY_DIR}/runtime_ptx.cpp)
target_include_directories(runtime_ptx PRIVATE ${PROJECT_SOURCE_DIR}/src)
add_dependencies(runtime_ptx runtime_nvptx)
