// SPDX-License-Identifier: Apache-2.0
// Text tests: input and expectation in one file, the command in its header (docs/testing.md).
//
//   # test: pass=split_reductions
//   # Why this test exists.
//   <input text of any level>
//   ---- expect
//   <output>
//
// Several cases are separated by lines of `====`. A case without a `# test:` line has the command
// of the case before it.
#pragma once

#include <string>
#include <vector>

namespace nautilus::driver {

struct TestOptions {
  bool update = false;
  int threads = 0;
  bool on_device = false;  // only cases that run kernels, on the GPU instead of in the emulator
};

struct TestReport {
  int passed = 0;
  int failed = 0;
  int updated = 0;
  std::string text;  // what to print: failures with their diffs
};

// Runs the tests of the files and of all test files below the folders given.
TestReport run_text_tests(const std::vector<std::string>& paths, const TestOptions& options);

}  // namespace nautilus::driver
