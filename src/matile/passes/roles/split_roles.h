// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Loading roles and a compute role from the one role of a nest (R9: roles are projections).
//
//   slot_tile a : bf16[128, 64]                    ring a_b_ring slots 4
//   slot_tile b : bf16[256, 64]                      slot_tile a : bf16[128, 64]
//   role compute groups 2 index w                    slot_tile b : bf16[256, 64]
//     each t in T                                  role load warp 0 regs 24
//       loop k from 0 up kb                ->        each t in T
//         fetch a from Am[64 * k, 128 * t]             loop k from 0 up kb
//         fetch b from Bm[64 * k, 0]                     fill a_b_ring
//         dot s add a rows 64 * w, b trans                 copy a from ...
//                                                  role compute groups 2 index w regs 240
//                                                    each t in T
//                                                      loop k from 0 up kb
//                                                        get a_b_ring
//                                                        dot s add a rows 64 * w, b trans
//
// Operands that are always fetched together share a ring. A ring is per group if its coordinates
// depend on the group's index; otherwise the groups share it. Groups with a shorter range than the
// loader skip the difference. Slots, registers, staging buffers and loader warps follow from
// structure and capacity unless a `decide` line says otherwise. Groups that alternate tiles jump
// over the others' slots.
//
// Needs a kernel in nest form with spread layouts; gives roles form. Refused (and reported): bounds
// of a shared ring that are not monotone in the group and read no elements, more sequences than
// loading warps, rings that do not fit shared memory. Test: test/matile/passes/split_roles.matile.
std::optional<ir::Program> split_roles(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
