// SPDX-License-Identifier: Apache-2.0
// Forms of the algebra: which of the rewrites are used that pay only for some programs. Scheduling
// compares the resulting programs; a line of the schedule, `algebra limbs on`, asks for one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "decision/program_lines.h"

namespace nautilus::compile {

using decision::Rewrite;

// The decision documents what each rewrite does (decision/program_lines.h).
class Algebra {
 public:
  // The form of most programs.
  Algebra() = default;

  bool has(Rewrite rewrite) const { return (taken_ & bit(rewrite)) != 0; }
  Algebra with(Rewrite rewrite, bool is_taken = true) const {
    Algebra out = *this;
    out.taken_ = is_taken ? taken_ | bit(rewrite) : taken_ & ~bit(rewrite);
    return out;
  }
  Algebra without(Rewrite rewrite) const { return with(rewrite, false); }

  bool operator==(const Algebra&) const = default;

 private:
  static constexpr uint32_t bit(Rewrite rewrite) {
    return uint32_t{1} << static_cast<uint32_t>(rewrite);
  }

  uint32_t taken_ = bit(Rewrite::Residues) | bit(Rewrite::Narrow) | bit(Rewrite::Sums) |
                    bit(Rewrite::Extremes) | bit(Rewrite::Tables) | bit(Rewrite::Masks);
};

// All rewrites, in the order of their lines.
std::vector<Rewrite> rewrites();
// The pass that is the rewrite.
std::string_view pass_of(Rewrite rewrite);
// All forms, those that most programs have first.
std::vector<Algebra> forms_of_algebra();
// Every rewrite at once. No program uses this form, but its sequence of passes contains all other
// sequences.
Algebra every_rewrite();

}  // namespace nautilus::compile
