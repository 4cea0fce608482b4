// SPDX-License-Identifier: Apache-2.0
// Register tiles to tensors, through staging buffers in shared memory.
#include "emit/kernel/shared_tiles.h"

namespace nautilus::emit {

using matile::RingInfo;

void emit_store(const matile::Store& op, KernelScope& scope) {
  const auto& stage = *scope.resources.stage(op.stage);
  const auto& tile = scope.registers.tiles.find(op.tile.str())->second;
  const layout::FragmentStore fragment{.tile = stage.tile, .cols = stage.tile.cols};
  const std::string cursor = identifier(op.stage.str()) + "_at";
  const bool has_cursor = stage.buffers() > 1;
  check_store_formula(fragment);
  scope.out.open("{{  // store {} through {}", op.tile.str(), op.stage.str());
  if (const RingInfo* ring = stage.op->ring ? scope.resources.ring(stage.op->ring) : nullptr) {
    // The newest slot held; it was given back, so that it could be filled, after it had been read.
    scope.out.line("const u32 to = {} + {} * {};", scope.slot_address(*ring, ring->slot_tiles[0]),
                   scope.group_text(), ring->copy_bytes());
  } else {
    scope.out.line("const u32 to = smem + {} + ({}{}) * {};", stage.offset,
                   has_cursor ? fmt::format("{} * {} + ", scope.group_text(), stage.buffers())
                              : scope.group_text(),
                   has_cursor ? cursor : "", stage.tile.bytes());
  }
  scope.out.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
  if (!stage.op->ring) scope.out.line("if (leader) tma_wait_read<{}>();", stage.buffers() - 1);
  scope.out.line("bar_sync({} + {}, 128);", scope.role->sync, scope.group_text());
  const std::string x = identifier(op.tile.str());
  scope.out.line(
      "UNROLL for (int step = 0; step < {0}; ++step) stmatrix_x4(to + step / 4 * {1} + row * 128 "
      "+ "
      "((2 * step % 8 + half) ^ (row % 8)) * 16, {2}[4 * step], {2}[4 * step + 1], {2}[4 * step "
      "+ "
      "2], {2}[4 * step + 3]);",
      array_length(tile) / 4, stage.tile.panel_bytes(), x);
  scope.out.line("fence_async();");
  scope.out.line("bar_sync({} + {}, 128);", scope.role->sync, scope.group_text());
  scope.out.line("if (leader) {{ tma_store(&p.{}, to{}); tma_commit(); }}",
                 identifier(op.map.str()), scope.list(op.at));
  if (has_cursor) scope.out.line("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", cursor, stage.buffers());
  scope.out.close();
}

void check_store_formula(const layout::FragmentStore& f) {
  for (int step = 0; step < f.steps(); ++step) {
    for (int warp = 0; warp < 4; ++warp) {
      for (int lane = 0; lane < 32; ++lane) {
        const int row = 16 * warp + lane % 16;
        const int half = lane / 16;
        const auto at = static_cast<uint32_t>(step / 4 * f.tile.panel_bytes() + row * 128 +
                                              ((2 * step % 8 + half) ^ (row % 8)) * 16);
        NAUT_CHECK(at == layout::lane_row_offset(f, warp, lane, step),
                   "the staging address of step {} is wrong", step);
      }
    }
  }
}

}  // namespace nautilus::emit
