// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// All passes from nest form to a kernel that can be emitted, in their order:
// spread_layouts, split_tile_reductions, sink_branches, defer_lanes, hoist_rows, share_registers,
// split_roles, place_turns, place_waits, speculate, delay_branches, advance_takes, multicast.
// What it returns is verified. Programs without unfinished kernels stay as they are. Test:
// test/matile/passes/golden_*.matile.
std::optional<ir::Program> finish_kernels(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
