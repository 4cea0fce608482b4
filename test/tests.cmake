# SPDX-License-Identifier: Apache-2.0
#
# The programs that test: unit tests, fuzzing, deletions in kernels. The tool itself needs none of them, and GoogleTest is
# needed by the unit tests alone.
find_package(GTest QUIET)

if(GTest_FOUND)
  file(GLOB OTHER_TESTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/capi/*_test.cc ${PROJECT_SOURCE_DIR}/test/docs/*.cc
       ${PROJECT_SOURCE_DIR}/test/emulator/*_test.cc
       ${PROJECT_SOURCE_DIR}/test/examples/*.cc ${PROJECT_SOURCE_DIR}/test/golden/*_test.cc
       ${PROJECT_SOURCE_DIR}/test/tune/*_test.cc)
  if(NOT TARGET Boost::context)
    list(FILTER OTHER_TESTS EXCLUDE REGEX "/test/emulator/")
  endif()
  add_executable(nautilus_unit_tests ${TEST_SOURCES} ${OTHER_TESTS})
  target_compile_options(nautilus_unit_tests PRIVATE -fexceptions -frtti)
  target_compile_definitions(nautilus_unit_tests PRIVATE NAUTILUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                         NAUTILUS_TOOL_DIR="${PROJECT_BINARY_DIR}")
  add_dependencies(nautilus_unit_tests nautilus)
  if(NAUTILUS_UNITY)
    target_precompile_headers(nautilus_unit_tests PRIVATE <fmt/format.h> <gtest/gtest.h> <map> <memory> <optional>
                              <string> <vector>)
  endif()
  target_include_directories(nautilus_unit_tests PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(nautilus_unit_tests PRIVATE nautilus_capi nautilus_core GTest::gtest GTest::gtest_main)
  set_target_properties(nautilus_unit_tests PROPERTIES UNITY_BUILD ${NAUTILUS_UNITY} UNITY_BUILD_BATCH_SIZE 8)

  # Tests of small libraries have helpers of the same names in one namespace.
  file(GLOB_RECURSE ALONE CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/emulator/*_test.cc ${PROJECT_SOURCE_DIR}/src/expr/*_test.cc
       ${PROJECT_SOURCE_DIR}/src/layout/*_test.cc ${PROJECT_SOURCE_DIR}/test/emulator/*_test.cc)
  set_source_files_properties(${ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
else()
  # Not ALL: who builds everything gets what can be built.
  add_custom_target(nautilus_unit_tests COMMAND ${CMAKE_COMMAND} -E echo "the unit tests need GoogleTest (libgtest-dev)"
                    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()

file(GLOB FUZZ_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/fuzz/*.cc)
add_executable(nautilus_fuzz ${FUZZ_SOURCES})
target_compile_definitions(nautilus_fuzz PRIVATE NAUTILUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_link_libraries(nautilus_fuzz PRIVATE nautilus_core)

if(TARGET Boost::context)
  add_executable(nautilus_mutate ${PROJECT_SOURCE_DIR}/test/golden/mutation.cc)
  target_link_libraries(nautilus_mutate PRIVATE nautilus_core)
endif()

# What scripts/test_bundle.sh holds bundles against.
add_executable(nautilus_plan_launches ${PROJECT_SOURCE_DIR}/test/bundle/plan_launches.cc)
target_link_libraries(nautilus_plan_launches PRIVATE nautilus_core)

enable_testing()
add_test(NAME unit COMMAND nautilus_unit_tests)
add_test(NAME text COMMAND nautilus test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
