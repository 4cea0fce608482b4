// SPDX-License-Identifier: Apache-2.0
// Rounds an f32 operand of a product to the 16-bit dtype in which the other operand is stored, as
// the numerics contract allows unless it says `exact`.
//
//   dot u : f32[64, 64] = e, v
// becomes, where v is bf16,
//   set e_bf16[x0 < 64, x1 < 80] = bf16(e[x0, x1])
//   dot u : f32[64, 64] = e_bf16, v
//
// For a tile that was widened from that dtype, the original tile is used.
//
// Test: test/vrtile/operand_cast.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> operand_cast(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile
