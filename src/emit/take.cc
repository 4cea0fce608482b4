// SPDX-License-Identifier: Apache-2.0
// Register tiles from parts in shared memory.
#include "emit/kernel_emitter.h"

namespace nautilus::emit {

void KernelEmitter::take(const matile::Take& op) {
  const auto [ring, part] = r_.part(op.part);
  const auto& tile = scope_.tiles.find(op.tile.str())->second;
  out_.open("{{  // {} from {}", op.tile.str(), op.part.str());
  std::string from = slot_address(*ring, *part, identifier(ring->op->name.str()));
  if (ring->copies > 1) from += fmt::format(" + {} * {}", group_text(), ring->copy_bytes());
  if (op.rows) from += fmt::format(" + ({}) * 128", text(op.rows));
  if (op.cols) from += fmt::format(" + ({}) * {}", text(op.cols), part->tile.element_bytes);
  out_.line("const u32 from = {};", from);
  const int length = array_length(tile);
  const std::string name = identifier(op.tile.str());
  if (part->tile.rows == 1) {
    take_row_piece(*part, name, length);
  } else if (part->tile.element_bytes == 4) {
    // Two neighbouring columns of rows lane / 4 and 8 further, in panels of 32 columns.
    out_.line("const int row = 16 * warp + lane / 4, chunk = lane % 4 / 2;");
    out_.open("UNROLL for (int reg = 0; reg < {}; reg += 2) {{", length);
    out_.line(
        "shared_load_f32x2(from + reg / 16 * {} + (row + reg / 2 % 2 * 8) * 128 + ((reg / 4 % 4 * "
        "2 + chunk) ^ (row % 8)) * 16 + lane % 2 * 8, {}[reg], {}[reg + 1]);",
        part->tile.panel_bytes(), name, name);
    out_.close();
    // One lane releases the slot for all.
    out_.line("sync_warp();");
  } else {
    // The mirror image of a store: the same rows of 16 bytes, read into the same registers.
    check_store_formula({.tile = part->tile, .cols = part->tile.cols});
    out_.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
    out_.open("UNROLL for (int step = 0; step < {}; ++step) {{", length / 4);
    out_.line("u32 x[4];");
    out_.line(
        "ldmatrix_x4(from + step / 4 * {} + row * 128 + ((2 * step % 8 + half) ^ (row % 8)) * 16, "
        "x);",
        part->tile.panel_bytes());
    out_.line("UNROLL for (int reg = 0; reg < 4; ++reg) {}[4 * step + reg] = x[reg];", name);
    out_.close();
  }
  out_.close();
}

// One row for all lanes: column 8 * j + 2 * (lane % 4) is register 2 * j. A matrix whose eight rows
// are the same 16 bytes gives every lane the pair of its columns, four matrices at a time.
void KernelEmitter::take_row_piece(const SlotTileInfo& part, const std::string& name, int length) {
  if (part.tile.element_bytes == 4) {
    out_.open("UNROLL for (int reg = 0; reg < {}; reg += 2) {{", length);
    out_.line("shared_load_f32x2(from + reg * 16 + lane % 4 * 8, {}[reg], {}[reg + 1]);", name,
              name);
    out_.close();
    out_.line("sync_warp();");
    return;
  }
  const std::string_view unpack =
      part.op->type.dtype == expr::DType::BF16 ? "unpack_bf16" : "unpack_f16";
  out_.open("UNROLL for (int reg = 0; reg < {}; reg += 8) {{", length);
  out_.line("u32 x[4];");
  // Rows beyond the end are the last one.
  out_.line("ldmatrix_x4(from + minimum(reg / 2 + lane / 8, {}) * 16, x);", length / 2 - 1);
  out_.line(
      "UNROLL for (int k = 0; k < 8; ++k) if (reg + k < {}) {}[reg + k] = {}(x[k / 2], k % 2);",
      length, name, unpack);
  out_.close();
}

}  // namespace nautilus::emit
