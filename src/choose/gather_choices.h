// SPDX-License-Identifier: Apache-2.0
// Reductions that choose elements by a count of what comes before them (lower/places/sort_nests.h)
// stand right behind it, so that one kernel can put the row in order for all of them:
//
//   for .. map  P = the count            for .. map  P = the count
//   for .. map  V = chosen by P          for .. map  V = chosen by P
//   for .. map  W = of V         becomes for .. map  I = chosen by P
//   for .. map  I = chosen by P          for .. map  W = of V
//
// Always done where what they read is computed before: it changes no result and no other nest, so
// there is nothing to choose. Test: test/choose/gather_choices.scalar
#pragma once

#include "ir/pass.h"

namespace nautilus::choose {

// Scalar to scalar, before kernels are chosen.
std::optional<ir::Program> gather_choices(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::choose
