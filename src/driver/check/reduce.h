// SPDX-License-Identifier: Apache-2.0
// A smaller program with the same failure: what `nautilus reduce` does with the text of a program.
#pragma once

#include <functional>
#include <string>

namespace nautilus::driver {

struct Reduction {
  std::string text;
  int tried = 0;
};

// Makes a text smaller while `has_failure` holds for it: leaves out lines, puts an operand or the
// number 1 in place of an expression, makes sizes smaller; again and again until nothing helps or
// `most` texts were tried. Texts that are no programs are tried too, so `has_failure` must tell the
// failure that is looked for from all others. It must hold for `text`.
Reduction reduce(std::string text, const std::function<bool(const std::string&)>& has_failure,
                 int most);

}  // namespace nautilus::driver
