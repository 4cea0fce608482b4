// SPDX-License-Identifier: Apache-2.0
//
// Single deletions in the text of a kernel: each mutant lacks one call that synchronises (a wait,
// an arrival, an announcement, a commit, a fence, a barrier, a step of a ring). A test harness that
// lets a mutant pass does not test that call. Ring::fill waits and announces, so it gives two
// mutants: without the one and without the other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nautilus::emulator {

struct Mutant {
  int line = 0;
  std::string deleted;      // the statement, or "the wait of ..." for part of a fill
  std::string description;  // "line 31: deleted `AB.get();`"
  std::string body;
};

// All of them, in the order of the text. Comments and strings are not looked at.
std::vector<Mutant> mutants(std::string_view body);

}  // namespace nautilus::emulator
