// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace nautilus::ir {

// A name as the emitted text has it: `a.b` is written `a_b`. New names are chosen by this form, so
// that names of the compiler, which have dots, never clash with names of a program, which have
// none.
inline std::string flat_name(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '.' ? '_' : c;
  return out;
}

}  // namespace nautilus::ir
