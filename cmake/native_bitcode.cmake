# src/runtime/native/native_bitcode.cpp, what generated code is made of, as bitcode for each target; the
# library native_bitcode carries it inside the binary, for src/codegen.
set(native_source ${PROJECT_SOURCE_DIR}/src/runtime/native/native_bitcode.cpp)
function(native_host file)
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${CMAKE_CXX_COMPILER} -std=gnu++20 -O2 -fno-exceptions -fno-rtti -ffp-contract=off ${guest_memory_flags}
            -fno-stack-protector -fno-asynchronous-unwind-tables -Wall -Wextra -Werror -Wshadow
            -Wno-gnu-statement-expression -I${PROJECT_SOURCE_DIR}/src ${ARGN} -emit-llvm -c
            -MD -MF ${file}.d -MT ${file} ${native_source} -o ${file}
    DEPENDS ${native_source}
    DEPFILE ${file}.d
    COMMENT "Compiling src/runtime/native/native_bitcode.cpp for the host into ${file}"
    VERBATIM)
endfunction()
set(NATIVE_HOST_BITCODE ${PROJECT_BINARY_DIR}/native_host.bc)
native_host(${NATIVE_HOST_BITCODE})
set(native_bitcode_files ${NATIVE_HOST_BITCODE})
function(native_nvptx name)
  set(file ${PROJECT_BINARY_DIR}/native_${name}.bc)
  nvptx_compile_file(${native_source} ${file} -march=sm_75 -c -emit-llvm ${ARGN})
  string(TOUPPER NATIVE_${name}_BITCODE variable)
  set(${variable} ${file} PARENT_SCOPE)
  set(native_bitcode_files ${native_bitcode_files} ${file} PARENT_SCOPE)
endfunction()
native_nvptx(burst)
native_nvptx(interleaved -DGPURUN_INTERLEAVED=1)
native_nvptx(space -DGPURUN_SOLO=1)
native_nvptx(machine -DGPURUN_LOCAL_STACK=1 -DGPURUN_RESIDENT=1)
add_custom_target(native_bitcode_files DEPENDS ${native_bitcode_files})
configure_file(${PROJECT_SOURCE_DIR}/cmake/native_bitcode.cpp.in native_bitcode.cpp @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/native_bitcode.cpp PROPERTIES
                            OBJECT_DEPENDS "${native_bitcode_files}")
add_library(native_bitcode STATIC ${PROJECT_BINARY_DIR}/native_bitcode.cpp)
add_dependencies(native_bitcode native_bitcode_files)

# The stencils of quick code, for x86-64: compiled to an object, from which pack_stencils.cpp makes tables.
set(stencil_object -)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(stencil_source ${PROJECT_SOURCE_DIR}/src/runtime/native/quick_stencils.cpp)
  set(stencil_object ${PROJECT_BINARY_DIR}/quick_stencils.o)
  # Addresses of symbols stand for numbers of 32 bits. Short code has its jumps at the end.
  add_custom_command(
    OUTPUT ${stencil_object}
    COMMAND ${CMAKE_CXX_COMPILER} -std=gnu++20 -Oz -march=x86-64-v3 -fno-pic -mcmodel=small -fno-jump-tables
            -ffunction-sections -fcf-protection=none -fno-exceptions -fno-rtti -ffp-contract=off ${guest_memory_flags}
            -fno-stack-protector -fno-asynchronous-unwind-tables -Wall -Wextra -Werror -Wno-unused-parameter
            -Wno-gnu-statement-expression -I${PROJECT_SOURCE_DIR}/src -c
            -MD -MF ${stencil_object}.d -MT ${stencil_object} ${stencil_source} -o ${stencil_object}
    DEPENDS ${stencil_source}
    DEPFILE ${stencil_object}.d
    COMMENT "Compiling the stencils of quick code"
    VERBATIM)
endif()
set(stencil_tables ${PROJECT_BINARY_DIR}/generated/stencils.cpp)
add_custom_command(OUTPUT ${stencil_tables} COMMAND pack_stencils ${stencil_object} ${stencil_tables}
                   DEPENDS pack_stencils $<$<NOT:$<STREQUAL:${stencil_object},->>:${stencil_object}> VERBATIM)

# What images depend on: kept ones are not taken for another's.
file(GLOB hashed CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/codegen/*
     ${PROJECT_SOURCE_DIR}/src/translate/* ${PROJECT_SOURCE_DIR}/src/abi/*)
set(codegen_hash ${PROJECT_BINARY_DIR}/generated/codegen_hash.h)
add_custom_command(
  OUTPUT ${codegen_hash}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${codegen_hash} "-DFILES=${hashed};${native_bitcode_files}"
          -P ${PROJECT_SOURCE_DIR}/cmake/hash_files.cmake
  DEPENDS ${hashed} ${native_bitcode_files} ${PROJECT_SOURCE_DIR}/cmake/hash_files.cmake
  VERBATIM)
add_custom_target(codegen_hash DEPENDS ${codegen_hash})

# LLVM: the shared library, or static ones where the binary goes to other machines.
find_package(LLVM 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
if(GPURUN_STATIC)
  llvm_map_components_to_libnames(llvm_libraries ${LLVM_NATIVE_ARCH} NVPTX JITLink Passes BitReader
                                  AsmParser)
  # What LLVM's support library links, statically too; a solver that nothing here uses is left out.
  get_target_property(llvm_needs LLVMSupport INTERFACE_LINK_LIBRARIES)
  list(FILTER llvm_needs EXCLUDE REGEX "z3|ZLIB|zstd")
  find_library(Z_STATIC libz.a REQUIRED)
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
                        "${llvm_needs};${Z_STATIC};${zstd}")
else()
  set(llvm_libraries LLVM)
endif()
separate_arguments(llvm_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_executable(pack_stencils ${PROJECT_SOURCE_DIR}/cmake/pack_stencils.cpp)
target_include_directories(pack_stencils PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(pack_stencils SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(pack_stencils PRIVATE ${llvm_definitions})
target_link_libraries(pack_stencils PRIVATE LLVM)
# It runs once: compiling it quickly is worth more.
target_compile_options(pack_stencils PRIVATE -O0 -g0 -fno-sanitize=all)
