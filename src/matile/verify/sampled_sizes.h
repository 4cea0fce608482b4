// SPDX-License-Identifier: Apache-2.0
// Sizes and scalars with which a program may be called, drawn at random, for rules that are tried
// and not proved.
#pragma once

#include <optional>
#include <vector>

#include "base/random.h"
#include "ir/environment.h"
#include "ir/op.h"

namespace nautilus::matile {

// Integers that the program mentions: sizes near them are where it behaves differently.
std::vector<int64_t> constants_of(const ir::Program& program);

// Sizes and scalars of a call that the facts allow; nothing if these do not. The first sample is
// that of the hints.
std::optional<ir::Environment> sampled_sizes(const ir::Program& program,
                                             const std::vector<int64_t>& constants, bool is_hinted,
                                             base::Random& random);

}  // namespace nautilus::matile
