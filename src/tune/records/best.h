// SPDX-License-Identifier: Apache-2.0
// The schedule that trials say is best for a program at the sizes of its hints.
#pragma once

#include <functional>

#include "ir/op.h"
#include "tune/records/database.h"
#include "tune/records/winner.h"

namespace nautilus::tune {

struct Best {
  Winner winner;
  std::string machine;  // that it was measured on
  std::string source;   // of the trials, for people: the database's path, or that they are shipped
  size_t passed_over = 0;  // better ones that no longer apply
};

// Dims with hints; statics count with the equations.
std::map<std::string, int64_t> hinted_sizes(const ir::Program& program);

// Of trials on devices; of several devices the one with the most. The user's database comes first;
// where it has nothing that applies, the trials that come with the compiler (shipped.h). A schedule
// that no longer applies, because the compiler changed, does not hide the next best. Nothing if
// there are no trials, or none that applies. `error`, if the database cannot be read: shipped
// trials are looked at all the same. A file that is not there is no error. NAUTILUS_DB=none:
// nothing.
std::optional<Best> best_of(const ir::Program& program, const std::string& path,
                            std::string* error);

// One line for people: what was taken, and from where.
std::string note(const Best& best);

// Of this list of trials of one program at one set of sizes; `apply` says whether a schedule can
// still be followed. At most kMostTried are asked: a new compiler that refuses all of them must not
// cost a lowering for each.
inline constexpr size_t kMostTried = 8;
std::optional<Best> best_that_applies(const std::vector<Trial>& trials,
                                      const std::function<bool(const std::string&)>& apply);

}  // namespace nautilus::tune
