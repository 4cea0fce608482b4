// SPDX-License-Identifier: Apache-2.0
// VR-tile to MA-tile: tiles as values become slot tiles that are fetched, register tiles and views
// of tensors. Where things lie and who waits for whom is left to the passes of MA-tile.
//
//   par m < (M + 127) / 128, n < (N + 255) / 256 grid     let m_tiles = (M + 127) / 128
//     par w < 2 group                                     ...
//       set c_init[i < 64, j < 256] = 0.0                 map A_map[...] = A[...] box 64, 128
//       for k from 0 up (K + 63) / 64                     kernel gemm nest
//         carry c : f32[64, 256] from c_init next c1  ->    tiles T < tiles static
//         load a[i < 64, q < 64] = A[...] when ...          slot_tile a : bf16[128, 64]
//         load b[j < 256, q < 64] = B[...] when ...         role compute groups 2 index w
//         dot c1 : f32[64, 256] = a, b trans onto c           each t in T
//       store [i < 64, j < 256] C[...] = bf16(c[i, j])          ...
//
// * A load that products use becomes a slot tile and a fetch; one that only differs by 64 rows from
//   group to group inside a loop is one slot tile for all groups. Boxes and pieces of rows that
//   other ops use are fetched where they are used (tile_takes.h), other elements are read there.
// * Carried values are tiles that are copied before the loop and at its end; share_registers
//   removes the copies.
// * A condition per 16 rows (`any` of a group of rows) becomes a vote, since a warp holds such
// rows.
// * 16-bit results are stored by the copy engine: whole rows at once, or panels of 64 columns in an
//   unrolled loop together with the element-wise work before them. Others are put one by one.
// * Who works on a tile, how tiles are numbered and how operands arrive is read from the nest's
//   lines (nest_choices.h).
#pragma once

#include <string>

#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"
#include "lower/tiles/nest_answers.h"
#include "lower/tiles/tile_nest.h"

namespace nautilus::lower {

// The kernel of one grid nest of a VR-tile program, in nest form. Nothing, and why, if some op has
// no counterpart. `machine sms` and the program's declarations are the caller's. `rules`: answer
// what no line of the nest does; null: the lines are complete (choose/tiles/choose_tile_lines.h),
// and without one of them there is no kernel.
std::optional<LoweredKernel> lower_tile_nest(const GridNest& nest, NestAnswers* rules,
                                             FreshNames& names, ir::PassContext& context,
                                             std::string* why);

// Sizes, scalars, facts and tensors of a VR-tile program, and the machine: the MA-tile program that
// its kernels are added to. Takes their names.
ir::Program tile_declarations(const ir::Program& program, FreshNames& names, expr::ExprPool& pool);

// Every nest of a program, in nest form. Test: test/lower/vrtile_to_matile.vrtile
std::optional<ir::Program> vrtile_to_matile(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::lower
