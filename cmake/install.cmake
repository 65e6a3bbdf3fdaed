# cmake --install, and `make package`: a .deb and a tarball.
include(CMakePackageConfigHelpers)

install(TARGETS gpu-run)
install(TARGETS gpurun_shared gpurun_static EXPORT gpurun)
install(DIRECTORY include/gpurun TYPE INCLUDE)
install(DIRECTORY sdk DESTINATION ${CMAKE_INSTALL_DATADIR}/gpu-run)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# find_package(gpurun): targets gpurun::gpurun, which is the shared library, and gpurun::static.
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gpurun)
install(EXPORT gpurun NAMESPACE gpurun:: FILE gpurun-targets.cmake DESTINATION ${cmake_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpurun-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES cmake/gpurun-config.cmake ${PROJECT_BINARY_DIR}/gpurun-config-version.cmake
        DESTINATION ${cmake_folder})

# Relative, so that a folder that was moved still works.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/gpurun.pc.in ${PROJECT_BINARY_DIR}/gpurun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gpurun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_PACKAGE_NAME gpu-run)
set(CPACK_PACKAGE_CONTACT "the authors of gpu-run <gpu-run@example.org>")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_FILE_NAME
    gpu-run-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36)")
# The loader's cache must know the library.
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
set(CPACK_STRIP_FILES OFF)  # the release preset strips as it links
include(CPack)
