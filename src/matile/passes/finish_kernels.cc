// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/finish_kernels.h"

#include "matile/ops.h"
#include "matile/passes/advance_takes.h"
#include "matile/passes/defer_lanes.h"
#include "matile/passes/delay_branches.h"
#include "matile/passes/hoist_rows.h"
#include "matile/passes/multicast.h"
#include "matile/passes/place_turns.h"
#include "matile/passes/place_waits.h"
#include "matile/passes/share_registers.h"
#include "matile/passes/sink_branches.h"
#include "matile/passes/speculate.h"
#include "matile/passes/split_roles.h"
#include "matile/passes/split_tile_reductions.h"
#include "matile/passes/spread_layouts.h"

namespace nautilus::matile {

std::optional<ir::Program> finish_kernels(const ir::Program& program, ir::PassContext& context) {
  // Layouts first: they say what a reduction's parts are. Branches before lanes: an exchange that
  // only a branch needs sinks into it. Work per row is hoisted after that, so that a branch is
  // still seen as one. Registers are shared before roles are split, while every tile still has one
  // text. Waits come after that: they depend on everything that touches a tile. Speculation changes
  // what a step does first, not what it waits for; branches are moved when all of them are there,
  // and takes when every wait is.
  static constexpr ir::Pass kPasses[] = {
      spread_layouts,  split_tile_reductions, sink_branches, defer_lanes, hoist_rows,
      share_registers, split_roles,           place_turns,   place_waits, speculate,
      delay_branches,  advance_takes,         multicast};
  ir::Program current = program;
  bool is_verified = false;  // place_waits does it; what changes afterwards is looked at again
  for (const ir::Pass pass : kPasses) {
    auto next = pass(current, context);
    if (!next) return std::nullopt;
    is_verified = pass == place_waits || (is_verified && *next == current);
    current = std::move(*next);
  }
  if (!is_verified && !verify(current, context.sink)) return std::nullopt;
  return current;
}

}  // namespace nautilus::matile
