// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Loads a tile from shared memory while the product that it is combined with still runs.
//
//   get Br                                     get Br
//   wait 1 for S                               take z from bs
//   release Kr                           ->    wait 1 for S
//   take z from bs                             release Kr
//   set S[i < 64, j < 128] = S[i, j] + z[i, j]
//
// Why: after the wait nothing hides the latency of the loads. The tile is held longer, so this is
// done where the tiles of the block leave registers free.
//
// Needs final form, keeps it. Test: test/matile/passes/advance_takes.matile.
std::optional<ir::Program> advance_takes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
