// SPDX-License-Identifier: Apache-2.0
//
// One XOR with a mask serves all modes; the rest is the arithmetic of panels and boxes.
#include "layout/swizzle.h"

#include "base/check.h"

namespace nautilus::layout {

std::string_view swizzle_name(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::None:
      return "none";
    case Swizzle::B32:
      return "32B";
    case Swizzle::B64:
      return "64B";
    case Swizzle::B128:
      return "128B";
  }
  NAUT_CHECK(false, "no such swizzle");
}

int span_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::None:
      return 16;
    case Swizzle::B32:
      return 32;
    case Swizzle::B64:
      return 64;
    case Swizzle::B128:
      return 128;
  }
  NAUT_CHECK(false, "no such swizzle");
}

int atom_bytes(Swizzle swizzle) { return 8 * span_bytes(swizzle); }

uint32_t swizzled(uint32_t address, Swizzle swizzle) {
  // As many bits as number the 16-byte chunks of a span: 0 without a swizzle.
  const auto mask = static_cast<uint32_t>(span_bytes(swizzle) / 16 - 1);
  return address ^ ((address >> 7 & mask) << 4);
}

namespace {

void check(const PanelTile& tile) {
  NAUT_CHECK(tile.rows >= 1 && tile.cols >= 1, "tile of {} x {}", tile.rows, tile.cols);
  NAUT_CHECK(tile.element_bytes == 1 || tile.element_bytes == 2 || tile.element_bytes == 4,
             "elements of {} bytes", tile.element_bytes);
  NAUT_CHECK(tile.panels() == 1 || tile.rows % 8 == 0, "{} panels of {} rows", tile.panels(),
             tile.rows);
}

}  // namespace

uint32_t PanelTile::offset(int row, int col) const {
  check(*this);
  NAUT_CHECK(row >= 0 && row < rows && col >= 0 && col < panels() * panel_cols(),
             "element ({}, {}) of a tile of {} x {}", row, col, rows, cols);
  const int linear = col / panel_cols() * panel_bytes() + row * span_bytes(swizzle) +
                     col % panel_cols() * element_bytes;
  return swizzled(static_cast<uint32_t>(linear), swizzle);
}

TileElement PanelTile::element_at(uint32_t offset) const {
  check(*this);
  NAUT_CHECK(offset < static_cast<uint32_t>(bytes()), "offset {} of {} bytes", offset, bytes());
  // The XOR changes bits below the span only, so a byte never leaves its row.
  const int linear = static_cast<int>(swizzled(offset, swizzle));
  const int in_panel = linear % panel_bytes();
  const int in_row = in_panel % span_bytes(swizzle);
  return {in_panel / span_bytes(swizzle),
          linear / panel_bytes() * panel_cols() + in_row / element_bytes, in_row % element_bytes};
}

uint32_t tma_box_offset(std::span<const int> box, std::span<const int> at, Swizzle swizzle,
                        int element_bytes) {
  NAUT_CHECK(!box.empty() && box.size() <= 5 && at.size() == box.size(),
             "box of {} dimensions, element of {}", box.size(), at.size());
  const int inner_bytes = box[0] * element_bytes;
  NAUT_CHECK(swizzle == Swizzle::None ? inner_bytes % 16 == 0 : inner_bytes == span_bytes(swizzle),
             "inner dimension of {} bytes with swizzle {}", inner_bytes, swizzle_name(swizzle));
  int64_t linear = 0;
  for (size_t dim = box.size(); dim-- > 0;) {
    NAUT_CHECK(box[dim] >= 1 && box[dim] <= 256, "box dimension {}", box[dim]);
    NAUT_CHECK(at[dim] >= 0 && at[dim] < box[dim], "coordinate {} of a box dimension of {}",
               at[dim], box[dim]);
    linear = linear * box[dim] + at[dim];
  }
  return swizzled(static_cast<uint32_t>(linear * element_bytes), swizzle);
}

}  // namespace nautilus::layout
