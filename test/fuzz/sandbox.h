// SPDX-License-Identifier: Apache-2.0
// Runs cases in child processes, so that a crash, a failed internal check or a hang is one more
// result and does not end the run.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "diag/diagnostic.h"

namespace nautilus::fuzz {

using Clock = std::chrono::steady_clock;

// What one case showed.
struct Verdict {
  bool is_accepted = false;        // the text was accepted by the checker
  std::optional<diag::Code> code;  // the first error reported, if any
  std::string key;                 // empty: nothing wrong; the same key means the same bug
  std::string message;
};

struct Tally {
  int64_t cases = 0;
  int64_t accepted = 0;
  std::map<std::string, int64_t> codes;  // first errors, by number
  void add(const Tally& other);
};

struct FailedCase {
  int64_t index = 0;
  std::string key;
  std::string message;
};

struct Batch {
  Tally tally;
  std::optional<FailedCase> failure;  // the batch ends at its first failure
};

constexpr unsigned kSecondsPerCase = 60;  // compiling a large program takes 20

using CaseFunction = Verdict (*)(void* context, int64_t index);
// Runs the cases first, first + 1, ... in one child until `count` are done, one fails, or the
// deadline has passed.
Batch run_batch(int64_t first, int64_t count, Clock::time_point deadline, CaseFunction run,
                void* context);

template <class F>
Batch run_batch(int64_t first, int64_t count, Clock::time_point deadline, F&& run) {
  return run_batch(
      first, count, deadline,
      [](void* context, int64_t index) {
        return (*static_cast<std::remove_reference_t<F>*>(context))(index);
      },
      &run);
}

}  // namespace nautilus::fuzz
