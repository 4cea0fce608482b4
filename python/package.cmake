# SPDX-License-Identifier: Apache-2.0
#
# What `pip install .` needs of CMake (pyproject.toml): the library inside of the package's folder. With
# NAUTILUS_PREBUILT, the path of a libnautilus, nothing is compiled: for tests of the package next to a build.

if(NAUTILUS_PREBUILT)
  if(NOT EXISTS "${NAUTILUS_PREBUILT}")
    message(FATAL_ERROR "NAUTILUS_PREBUILT: there is no file ${NAUTILUS_PREBUILT}")
  endif()
  get_filename_component(PREBUILT_FILE "${NAUTILUS_PREBUILT}" REALPATH BASE_DIR "${CMAKE_SOURCE_DIR}")
  install(FILES ${PREBUILT_FILE} DESTINATION nautilus/lib RENAME libnautilus${CMAKE_SHARED_LIBRARY_SUFFIX} COMPONENT python)
  add_custom_target(nautilus_c)
elseif(TARGET nautilus_c)
  # By its plain name: wheels keep no links.
  install(FILES $<TARGET_FILE:nautilus_c> DESTINATION nautilus/lib RENAME libnautilus${CMAKE_SHARED_LIBRARY_SUFFIX}
          COMPONENT python)
endif()
