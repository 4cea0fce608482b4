# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install`: the library and its header, the tool, and what finds them: a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS nautilus_c EXPORT nautilus_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/include/nautilus.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(NAUTILUS_TOOL)
  install(TARGETS nautilus RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/nautilus)
install(EXPORT nautilus_targets NAMESPACE nautilus:: FILE nautilusTargets.cmake DESTINATION ${PACKAGE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/capi/nautilusConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/generated/nautilusConfig.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/nautilusConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/nautilusConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/nautilusConfigVersion.cmake DESTINATION ${PACKAGE_DIR})

# The file says where it is, so that the folder may be moved.
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/tools/capi/nautilus.pc.in ${PROJECT_BINARY_DIR}/generated/nautilus.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/nautilus.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
