// SPDX-License-Identifier: Apache-2.0
// The kernels of a program without the names and the bookkeeping of their text, to compare two
// programs that were written differently.
//
//   let kb = (K + 63) / 64              ring ring1 slots 6
//   kernel gemm                           slot_tile slot_tile1 : bf16[128, 64]
//     ring AB slots 6                   ...
//       slot_tile a : bf16[128, 64]     loop i from 1 up (K + 63) / 64
//     ...                                 get ring1
//     tile s : f32[128, 128] acc          dot acc_f32_128_128 add slot_tile1, slot_tile2 trans
//     loop k from 1 up kb
//       get AB
//       dot s add a, b trans
//
// Scalars named by `let` are written out where they are used, and simplified with the program's
// facts. A tile is named after its type and its place, so two tiles with the same type and place
// are not told apart; maps are named after their tensors, everything else by its order. Sizes,
// tensors and params keep their names.
#pragma once

#include <string>
#include <string_view>

#include "matile/ops.h"

namespace nautilus::matile {

// Of all kernels in final form, or of the one that is named.
std::string outline(const ir::Program& program, expr::ExprPool& pool, std::string_view kernel = {});

}  // namespace nautilus::matile
