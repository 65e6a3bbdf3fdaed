# src/runtime for NVIDIA GPUs: src/runtime/kernels/*_nvptx.cpp, each a translation unit with the whole
# runtime in it, as PTX for the CUDA driver to assemble (one file a variant) and as machine code where
# GPURUN_CUBINS says so. The library runtime_kernels carries both inside the binary
# (device/cuda/runtime_kernels.h).

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

# ---- machine code ----------------------------------------------------------------------

# The driver assembles PTX when a kernel is first used, for 8 to 19 s: releases carry the kernels
# assembled. NVIDIA's linker library does that as the driver would, without a GPU.
set(GPURUN_CUBINS OFF CACHE STRING "carry the kernels as machine code too: ON, OFF, or AUTO if NVIDIA's linker can be had")
set_property(CACHE GPURUN_CUBINS PROPERTY STRINGS AUTO ON OFF)
# Machine code runs on chips of the same major version whose minor version is not lower.
set(GPURUN_CUBIN_CHIPS 75 80 90 100 120 CACHE STRING "chips that machine code of the kernels is made for")
set(cubin_chips ${GPURUN_CUBIN_CHIPS})
if(GPURUN_CUBINS)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/find-nvjitlink ${PROJECT_SOURCE_DIR}/build/venv
                  OUTPUT_VARIABLE nvjitlink OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed AND GPURUN_CUBINS STREQUAL AUTO)
    message(WARNING "The kernels will not be in this build as machine code: NVIDIA's linker, the Python package "
                    "nvidia-nvjitlink-cu12, is not here and could not be installed. GPUs will assemble them when "
                    "they are first used, for 8 to 19 s. -DGPURUN_CUBINS=OFF says that this is wanted.")
    set(nvjitlink "")
  elseif(failed)
    message(FATAL_ERROR "GPURUN_CUBINS is ON, but scripts/find-nvjitlink finds no linker; AUTO does without.")
  endif()
else()
  set(nvjitlink "")
endif()

# ---- kernels ---------------------------------------------------------------------------

option(GPURUN_KERNELS "carry kernels for GPUs; without them only the CPU device is of use" ON)

add_executable(pack_kernel ${PROJECT_SOURCE_DIR}/cmake/pack_kernel.cpp)
target_link_libraries(pack_kernel PRIVATE base ${CMAKE_DL_LIBS})

set(ptx_files)
set(packed_files)
set(kernel_embeds)
set(kernel_functions)
# gpurun_embed(<symbol> <PTX file> <word>...): packs it, as pack_kernel.cpp says.
function(gpurun_embed symbol ptx)
  set(file ${PROJECT_BINARY_DIR}/kernels/${symbol}.packed)
  add_custom_command(OUTPUT ${file} COMMAND pack_kernel ${ptx} ${file} ${ARGN} DEPENDS pack_kernel ${ptx}
                     COMMENT "Packing ${symbol}" VERBATIM)
  set(packed_files ${packed_files} ${file} PARENT_SCOPE)
  set(kernel_embeds "${kernel_embeds}EMBED(${symbol}, \"${file}\")\n" PARENT_SCOPE)
endfunction()
# gpurun_kernel(<name>_<floor> <function> <registers> "<chips>" <flag>...): a variant for chips of compute capability
# <floor> and later, whose lanes have so many registers at the most; machine code is made for <chips>.
function(gpurun_kernel name function registers chips)
  if(NOT GPURUN_KERNELS)
    string(APPEND kernel_functions "const RuntimeKernel& ${name}() {\n"
           "    static const RuntimeKernel kernel{\"${function}\", ${registers}, {}, {}};\n    return kernel;\n}\n")
    set(kernel_functions "${kernel_functions}" PARENT_SCOPE)
    return()
  endif()
  set(ptx ${PROJECT_BINARY_DIR}/${name}.ptx)
  string(REGEX MATCH "[0-9]+$" floor ${name})
  # gpurun_burst is in burst_nvptx.cpp, and so on.
  string(REPLACE gpurun_ "" kind ${function})
  nvptx_compile_file(${PROJECT_SOURCE_DIR}/src/runtime/kernels/${kind}_nvptx.cpp ${ptx} -march=sm_${floor} ${ARGN} -S)
  gpurun_embed(${name} ${ptx})
  set(cubins)
  if(nvjitlink)
    foreach(chip ${chips})
      gpurun_embed(${name}_sm${chip} ${ptx} ${nvjitlink} ${chip} ${registers})
      string(APPEND cubins "BYTES(${name}_sm${chip}), ")
    endforeach()
  endif()
  string(APPEND kernel_functions "const RuntimeKernel& ${name}() {\n"
         "    static const RuntimeKernel kernel{\"${function}\", ${registers}, BYTES(${name}), {${cubins}}};\n"
         "    return kernel;\n}\n")
  foreach(list packed_files kernel_embeds kernel_functions)
    set(${list} "${${list}}" PARENT_SCOPE)
  endforeach()
  set(ptx_files ${ptx_files} ${ptx} PARENT_SCOPE)
endfunction()

# What a lane of a burst may have. Fewer make room for more warps, but on an H200 the spills cost
# more than those bring.
set(gang_registers 64)
set(solo_registers 255)
# A machine is interpreted as well, and should have room for many processes.
set(machine_registers 64)
# Machine code has more to keep in registers than the interpreter. Where memories interleave it waits less for them, and
# more warps are worth more than fewer spills.
set(native_gang_registers 96)
set(native_interleaved_registers 64)
set(native_solo_registers 255)
# The floor is compute capability 7.5; from 8.0 on there is redux.
set(from_75 ${cubin_chips})
set(until_80 75)
set(from_80 ${cubin_chips})
list(REMOVE_ITEM from_80 ${until_80})
gpurun_kernel(gang_75 gpurun_burst ${gang_registers} "${until_80}" -DGPURUN_LOCAL_STACK=1)
gpurun_kernel(gang_80 gpurun_burst ${gang_registers} "${from_80}" -DGPURUN_LOCAL_STACK=1 -DGPURUN_HAS_REDUX=1)
gpurun_kernel(deep_75 gpurun_burst ${gang_registers} "${from_75}")
gpurun_kernel(gang_interleaved_75 gpurun_burst ${gang_registers} "${until_80}" -DGPURUN_INTERLEAVED=1
              -DGPURUN_LOCAL_STACK=1)
gpurun_kernel(gang_interleaved_80 gpurun_burst ${gang_registers} "${from_80}" -DGPURUN_INTERLEAVED=1
              -DGPURUN_LOCAL_STACK=1 -DGPURUN_HAS_REDUX=1)
gpurun_kernel(deep_interleaved_75 gpurun_burst ${gang_registers} "${from_75}" -DGPURUN_INTERLEAVED=1)
gpurun_kernel(solo_75 gpurun_solo ${solo_registers} "${from_75}" -DGPURUN_SOLO=1 -DGPURUN_WINDOW=1)
gpurun_kernel(solo_deep_75 gpurun_solo ${solo_registers} "${from_75}" -DGPURUN_SOLO=1)
gpurun_kernel(resident_75 gpurun_resident ${machine_registers} "${until_80}" -DGPURUN_LOCAL_STACK=1 -DGPURUN_RESIDENT=1)
gpurun_kernel(resident_80 gpurun_resident ${machine_registers} "${from_80}" -DGPURUN_LOCAL_STACK=1
              -DGPURUN_HAS_REDUX=1 -DGPURUN_RESIDENT=1)
gpurun_kernel(native_gang_75 gpurun_burst ${native_gang_registers} "${from_75}" -DGPURUN_NATIVE=1)
gpurun_kernel(native_gang_interleaved_75 gpurun_burst ${native_interleaved_registers} "${from_75}" -DGPURUN_NATIVE=1
              -DGPURUN_INTERLEAVED=1)
gpurun_kernel(native_solo_75 gpurun_solo ${native_solo_registers} "${from_75}" -DGPURUN_NATIVE=1 -DGPURUN_SOLO=1)
add_custom_target(runtime_nvptx ALL DEPENDS ${ptx_files} ${packed_files})

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/kernels)
configure_file(${PROJECT_SOURCE_DIR}/cmake/runtime_kernels.cpp.in runtime_kernels.cpp @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/runtime_kernels.cpp PROPERTIES
                            OBJECT_DEPENDS "${packed_files}")
add_library(runtime_kernels STATIC ${PROJECT_BINARY_DIR}/runtime_kernels.cpp)
target_include_directories(runtime_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src)
add_dependencies(runtime_kernels runtime_nvptx)
