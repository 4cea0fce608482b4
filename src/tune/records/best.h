// SPDX-License-Identifier: Apache-2.0
// The schedule that trials say is best for a program at the sizes of its hints.
#pragma once

#include "ir/op.h"
#include "tune/records/database.h"
#include "tune/records/winner.h"

namespace nautilus::tune {

struct Best {
  Winner winner;
  std::string machine;  // that it was measured on
};

// Dims with hints; statics count with the equations.
std::map<std::string, int64_t> hinted_sizes(const ir::Program& program);

// Of trials on devices; of several devices the one with the most. Nothing if there are no trials,
// if the best schedule no longer applies, or, with `error`, if the database cannot be read. A file
// that is not there is no error.
std::optional<Best> best_of(const ir::Program& program, const std::string& path,
                            std::string* error);

}  // namespace nautilus::tune
