// SPDX-License-Identifier: Apache-2.0
// The names of tensors, axes and sizes in the lines of a schedule, and which names of the equations
// they come from: `S.max`, `S_max_parts` and `S` from `S`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/text/schedule.h"

namespace nautilus::schedule {

// All names of a schedule, of its kernels, too.
std::set<std::string> names_in(const Schedule& schedule);

// A name as pieces of which some come from the equations: `S.max` is "S" and ".max"; axes that are
// one axis, `i.j`, are "i", "." and "j".
struct NamePiece {
  std::string_view text;
  bool is_known = false;  // it is a name of the equations
};
std::vector<NamePiece> pieces_of_name(std::string_view name,
                                      const std::map<std::string, int64_t>& places);

// The schedule with other names: `now` has the names that stand at the places of the old ones.
// Unchanged where names are the same.
Schedule with_names(const Schedule& schedule, const std::vector<std::string>& now,
                    expr::ExprPool& pool);

}  // namespace nautilus::schedule
