// SPDX-License-Identifier: Apache-2.0
// Register tiles from slot tiles in shared memory.
#include "emit/kernel/shared_tiles.h"

namespace nautilus::emit {

namespace {

// One row for all lanes: column 8 * j + 2 * (lane % 4) is register 2 * j. A matrix with eight equal
// rows of 16 bytes gives every lane the pair of its columns, four matrices at a time.
void take_row_piece(const matile::SlotTileInfo& slot_tile, const std::string& name, int length,
                    Writer& out) {
  if (slot_tile.tile.element_bytes == 4) {
    out.open("UNROLL for (int reg = 0; reg < {}; reg += 2) {{", length);
    out.line("shared_load_f32x2(from + reg * 16 + lane % 4 * 8, {}[reg], {}[reg + 1]);", name,
             name);
    out.close();
    out.line("sync_warp();");
    return;
  }
  const std::string_view unpack =
      slot_tile.op->type.dtype == expr::DType::BF16 ? "unpack_bf16" : "unpack_f16";
  out.open("UNROLL for (int reg = 0; reg < {}; reg += 8) {{", length);
  out.line("u32 x[4];");
  // Rows beyond the end are the last one.
  out.line("ldmatrix_x4(from + minimum(reg / 2 + lane / 8, {}) * 16, x);", length / 2 - 1);
  out.line(
      "UNROLL for (int k = 0; k < 8; ++k) if (reg + k < {}) {}[reg + k] = {}(x[k / 2], k % 2);",
      length, name, unpack);
  out.close();
}

}  // namespace

void emit_take(const matile::Take& op, KernelScope& scope) {
  const auto [ring, slot_tile] = scope.resources.slot_tile(op.slot_tile);
  const auto& tile = scope.registers.tiles.find(op.tile.str())->second;
  scope.out.open("{{  // {} from {}", op.tile.str(), op.slot_tile.str());
  std::string from = scope.own_slot_address(*ring, *slot_tile);
  const bool is_transposed = op.trans == matile::Trans::Yes;
  // Rows of a transposed tile are columns of the slot tile, in panels of 64.
  if (op.rows && is_transposed)
    from += fmt::format(" + ({}) / 64 * {}", scope.text(op.rows), slot_tile->tile.panel_bytes());
  else if (op.rows)
    from += fmt::format(" + ({}) * 128", scope.text(op.rows));
  if (op.cols)
    from += fmt::format(" + ({}) * {}", scope.text(op.cols), slot_tile->tile.element_bytes);
  scope.out.line("const u32 from = {};", from);
  const int length = array_length(tile);
  const std::string name = identifier(op.tile.str());
  if (slot_tile->tile.rows == 1) {
    take_row_piece(*slot_tile, name, length, scope.out);
  } else if (is_transposed) {
    // Each 8 x 8 block is transposed by the load: lanes 8 m to 8 m + 7 name the rows of block m,
    // columns of the tile; blocks 1 and 3 are the tile's rows 8 to 15, 2 and 3 its next 8 columns.
    scope.out.line("const int column = lane / 16 * 8 + lane % 8, chunk = 2 * warp + lane / 8 % 2;");
    scope.out.open("UNROLL for (int step = 0; step < {}; ++step) {{", length / 4);
    scope.out.line("u32 x[4];");
    scope.out.line(
        "ldmatrix_x4_trans(from + (16 * step + column) * 128 + (chunk ^ (column % 8)) * 16, x);");
    scope.out.line("UNROLL for (int reg = 0; reg < 4; ++reg) {}[4 * step + reg] = x[reg];", name);
    scope.out.close();
  } else if (slot_tile->tile.element_bytes == 4) {
    // Two neighbouring columns of rows lane / 4 and 8 further, in panels of 32 columns.
    scope.out.line("const int row = 16 * warp + lane / 4, chunk = lane % 4 / 2;");
    scope.out.open("UNROLL for (int reg = 0; reg < {}; reg += 2) {{", length);
    scope.out.line(
        "shared_load_f32x2(from + reg / 16 * {} + (row + reg / 2 % 2 * 8) * 128 + ((reg / 4 % 4 * "
        "2 + chunk) ^ (row % 8)) * 16 + lane % 2 * 8, {}[reg], {}[reg + 1]);",
        slot_tile->tile.panel_bytes(), name, name);
    scope.out.close();
    // One lane releases the slot for all.
    scope.out.line("sync_warp();");
  } else {
    // The mirror image of a store: the same rows of 16 bytes, read into the same registers.
    check_store_formula({.tile = slot_tile->tile, .cols = slot_tile->tile.cols});
    scope.out.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
    scope.out.open("UNROLL for (int step = 0; step < {}; ++step) {{", length / 4);
    scope.out.line("u32 x[4];");
    scope.out.line(
        "ldmatrix_x4(from + step / 4 * {} + row * 128 + ((2 * step % 8 + half) ^ (row % 8)) * 16, "
        "x);",
        slot_tile->tile.panel_bytes());
    scope.out.line("UNROLL for (int reg = 0; reg < 4; ++reg) {}[4 * step + reg] = x[reg];", name);
    scope.out.close();
  }
  scope.out.close();
}

}  // namespace nautilus::emit
