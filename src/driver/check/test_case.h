// SPDX-License-Identifier: Apache-2.0
// One case of a text test file, and the commands a case can name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/check/kernel_check.h"

namespace nautilus::driver {

struct TestCase {
  std::string command;                         // "pass", "eval", ...
  std::string argument;                        // what follows `=` in the command
  std::map<std::string, std::string> options;  // name=value words after it
  std::string input;  // preceded by blank lines, so that line numbers are those of the file
  std::string expect;
  bool has_expect = false;
  std::string folder;  // of the file, for paths in arguments; ends with a slash
};

struct CaseResult {
  bool is_ok = true;
  std::string output;   // for commands with an expectation
  std::string message;  // why it failed, apart from a different output
  bool has_output = false;
};

// `on`: where the kernels of `kernels` and `fusion` run.
CaseResult run_case(const TestCase& test, const std::string& file_name,
                    RunsOn on = RunsOn::Emulator);

// True if the command runs kernels, so that it can test a device.
bool runs_kernels(const TestCase& test);

// One line per command: name and what it asserts.
const std::vector<std::pair<std::string, std::string>>& test_commands();

}  // namespace nautilus::driver
