# The library of include/gpurun: libgpurun.so, and libgpurun.a for those who want one file. Both hold
# the objects of all folders.
set(objects)
foreach(folder base wasm text translate native_bitcode codegen cache runtime runtime_kernels
        burst device host engine api)
  list(APPEND objects $<TARGET_OBJECTS:${folder}>)
endforeach()

foreach(kind SHARED STATIC)
  string(TOLOWER ${kind} suffix)
  set(target gpurun_${suffix})
  add_library(${target} ${kind} ${objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME gpurun LINKER_LANGUAGE CXX
                        EXPORT_NAME ${suffix})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE c_std_11)
endforeach()

set_target_properties(gpurun_shared PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR})
# The C++ library, where it is linked in, is not exported either.
set(exports ${PROJECT_SOURCE_DIR}/cmake/gpurun.map)
target_link_options(gpurun_shared PRIVATE -Wl,--version-script=${exports})
set_target_properties(gpurun_shared PROPERTIES LINK_DEPENDS ${exports})
target_link_libraries(gpurun_shared PRIVATE Threads::Threads ${llvm_libraries} ${zstd} ${CMAKE_DL_LIBS})
# Whoever links the static one links LLVM's shared library, and zstd's.
set(llvm_flags "-L${LLVM_LIBRARY_DIR} -lLLVM-${LLVM_VERSION_MAJOR} -lzstd")
target_link_libraries(gpurun_static INTERFACE stdc++ m pthread ${CMAKE_DL_LIBS} "${llvm_flags}")
