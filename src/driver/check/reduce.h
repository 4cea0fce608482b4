// SPDX-License-Identifier: Apache-2.0
// Finds a smaller program with the same failure, for `nautilus reduce`.
#pragma once

#include <functional>
#include <string>

namespace nautilus::driver {

struct Reduction {
  std::string text;
  int tried = 0;
};

// Makes a text smaller while `has_failure` holds for it: leaves out lines, replaces an expression
// by an operand or the number 1, makes sizes smaller. It repeats that until nothing helps or `most`
// texts were tried. Invalid texts are tried too, so `has_failure` must tell the wanted failure from
// all others. It must hold for `text`.
Reduction reduce(std::string text, const std::function<bool(const std::string&)>& has_failure,
                 int most);

}  // namespace nautilus::driver
