// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Tiles that can share registers get one name (R5).
//
//   loop n from 0 up nt                              loop n from 0 up nt
//     dot S init qs, ks trans                          dot S init qs, ks trans
//     set E[i < 64, j < 80] = exp2(S[i, j])     ->     set S[i < 64, j < 80] = exp2(S[i, j])
//     fold l1[i < 64] = l[i] + sum[j < 80] E[i, j]     fold l[i < 64] = l[i] + sum[j < 80] S[i, j]
//     set l[i < 64] = l1[i]
//
// Two tiles of one type and layout share registers if one is a copy of the other, or is computed
// element by element from the other, and if neither is written while the other still has a value
// that is read later. Accumulators of products share whenever they never live together. Copies
// between tiles that share disappear. Products in flight that still read a tile are ignored here:
// place_waits waits for them.
//
// Needs nest form with spread layouts, keeps it. Test: test/matile/passes/share_registers.matile.
std::optional<ir::Program> share_registers(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
