// SPDX-License-Identifier: Apache-2.0
// The winner for a program at the sizes of its hints.
#pragma once

#include <functional>

#include "ir/op.h"
#include "tune/records/database.h"
#include "tune/records/winner.h"

namespace nautilus::tune {

struct Best {
  Winner winner;
  std::string machine;  // that it was measured on
  std::string source;   // the source of the trials, for people: the database's path, or that they
                        // are shipped
  size_t passed_over = 0;  // number of better ones that no longer apply
};

// Dims with hints; statics belong to the equations.
std::map<std::string, int64_t> hinted_sizes(const ir::Program& program);

// From trials on the device with the most trials. The user's database comes first, then the trials
// that come with the compiler (shipped.h). If a schedule no longer applies because the compiler
// changed, the next best is used. Nothing if there are no trials, or none that applies. `error` is
// set if the database cannot be read; shipped trials are still used. A missing file is not an
// error. NAUTILUS_DB=none: nothing.
std::optional<Best> best_of(const ir::Program& program, const std::string& path,
                            std::string* error);

// Whether the present compiler follows a schedule of the program.
bool still_applies(const ir::Program& program, const std::string& schedule);

// What `source` says of trials that come with the compiler.
inline constexpr std::string_view kShippedSource = "trials that come with the compiler";

// One line for people: which schedule was chosen, and from where.
std::string note(const Best& best);

// Of this list of trials of one program at one set of sizes; `apply` says whether a schedule can
// still be followed. At most kMostTried are asked: a new compiler that refuses all of them must not
// cost a lowering for each.
inline constexpr size_t kMostTried = 8;
std::optional<Best> best_that_applies(const std::vector<Trial>& trials,
                                      const std::function<bool(const std::string&)>& apply);

}  // namespace nautilus::tune
