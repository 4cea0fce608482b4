# SPDX-License-Identifier: Apache-2.0
#
# libnautilus: the C interface (include/nautilus.h). Nothing but its functions can be seen from outside, and what it is
# made of is inside, so that a process may have other versions of the same libraries.
file(GLOB CAPI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capi/*.cc)
list(FILTER CAPI_SOURCES EXCLUDE REGEX "/fmt_inside\\.cc$")
add_library(nautilus_capi OBJECT ${CAPI_SOURCES})
target_include_directories(nautilus_capi PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tools/capi)
# What the standard library throws is caught here.
target_compile_options(nautilus_capi PRIVATE -fexceptions)
target_link_libraries(nautilus_capi PUBLIC nautilus_core)
set_target_properties(nautilus_capi PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                               VISIBILITY_INLINES_HIDDEN ON)

add_library(nautilus_c SHARED $<TARGET_OBJECTS:nautilus_capi> ${PROJECT_SOURCE_DIR}/tools/capi/fmt_inside.cc)
add_library(nautilus::nautilus ALIAS nautilus_c)
set(EXPORTS ${PROJECT_SOURCE_DIR}/tools/capi/exports.map)
set_target_properties(
  nautilus_c
  PROPERTIES OUTPUT_NAME nautilus
             EXPORT_NAME nautilus
             VERSION ${PROJECT_VERSION}
             SOVERSION ${PROJECT_VERSION_MAJOR}
             CXX_VISIBILITY_PRESET hidden
             VISIBILITY_INLINES_HIDDEN ON
             LINK_DEPENDS ${EXPORTS})
target_include_directories(nautilus_c INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_options(nautilus_c PRIVATE -Wl,--version-script=${EXPORTS} -Wl,--as-needed -Wl,--gc-sections -Wl,-z,defs)
target_link_libraries(nautilus_c PRIVATE nautilus_core)

# Static libraries stand before the shared ones of nautilus_core, which are then not needed.
if(TARGET Boost::context)
  find_library(NAUTILUS_STATIC_CONTEXT NAMES libboost_context.a)
endif()
if(TARGET SQLite::SQLite3)
  find_library(NAUTILUS_STATIC_SQLITE NAMES libsqlite3.a)
endif()
foreach(inside NAUTILUS_STATIC_CONTEXT NAUTILUS_STATIC_SQLITE)
  mark_as_advanced(${inside})
  if(${inside} AND NOT NAUTILUS_SANITIZE)
    target_link_libraries(nautilus_c PRIVATE ${${inside}})
  endif()
endforeach()
if(NAUTILUS_SANITIZE)
  # The sanitizers' own symbols are found when the process starts.
  target_link_options(nautilus_c PRIVATE -Wl,-z,undefs)
endif()
