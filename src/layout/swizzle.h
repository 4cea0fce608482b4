// SPDX-License-Identifier: Apache-2.0
//
// Tiles in shared memory: panels and swizzles.
//
// A panel is a stack of rows of `span` bytes: 128, 64, 32, or 16 without a swizzle. A tile wider
// than a row is cut into panels of that width, stored one after the other. With 16-bit elements and
// the 128-byte swizzle, a 64 x 128 tile is two panels of 64 rows x 64 elements, 8192 bytes each.
//
// Reading a column of 16-byte chunks from rows of 128 bytes would hit the same banks in every row.
// The swizzle permutes the chunks of each row so that it does not: it replaces the chunk number by
// its XOR with the row number. On the byte address (PTX ISA, "Swizzling modes"; the same for the
// copy engine and the matrix unit):
//
//     128 bytes: bits 4-6 ^= bits 7-9      64 bytes: bits 4-5 ^= bits 7-8      32 bytes: bit 4 ^=
//     bit 7
//
// The pattern repeats every 8 spans, its atom: 1024, 512, 256 bytes. Since the source bits are not
// changed, the swizzle is its own inverse. It acts on absolute addresses; where a tile begins at a
// multiple of its atom, it acts on offsets within the tile just as well, and all functions here
// return such offsets.
//
// Worked example, 128 bytes, 16-bit elements: element (row 5, col 20) of a panel has the linear
// offset 5*128 + 40 = 680; the chunk is 2, the row 5, 2 ^ 5 = 7, so it is at 5*128 + 7*16 + 8 =
// 760.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace nautilus::layout {

enum class Swizzle : uint8_t { None, B32, B64, B128 };

// "none", "32B", "64B", "128B".
std::string_view swizzle_name(Swizzle swizzle);

// The width of a panel in bytes. Without a swizzle it is 16: the matrix unit then reads core
// matrices of 8 rows of 16 bytes, and a panel of such rows is a column of them.
int span_bytes(Swizzle swizzle);

// The alignment of a tile: the period of the pattern (128 without one: a core matrix, and what the
// copy engine asks for).
int atom_bytes(Swizzle swizzle);

// Permutes byte addresses; its own inverse.
uint32_t swizzled(uint32_t address, Swizzle swizzle);

struct TileElement {
  int row = 0;
  int col = 0;
  int byte = 0;  // within the element

  friend bool operator==(const TileElement&, const TileElement&) = default;
};

// A tile of rows x cols elements in panels. Several panels need a multiple of 8 rows, so that each
// begins at a multiple of the atom; a last panel that is not full still takes its whole space.
struct PanelTile {
  int rows = 0;
  int cols = 0;
  Swizzle swizzle = Swizzle::B128;
  int element_bytes = 2;

  int panel_cols() const { return span_bytes(swizzle) / element_bytes; }
  int panels() const { return (cols + panel_cols() - 1) / panel_cols(); }
  int panel_bytes() const { return rows * span_bytes(swizzle); }
  int bytes() const { return panels() * panel_bytes(); }

  // Where element (row, col) begins. Columns up to the full width of the last panel are allowed.
  uint32_t offset(int row, int col) const;
  // The element of the byte at `offset`; the inverse of offset(). The column may be in the unused
  // part of the last panel.
  TileElement element_at(uint32_t offset) const;

  friend bool operator==(const PanelTile&, const PanelTile&) = default;
};

// Where the copy engine puts an element of a box. `box` and `at` list the innermost dimension
// first, as a tensor map does. The box is stored densely in that order and then swizzled. With a
// swizzle, the innermost dimension must fill the span: narrower rows are allowed by the hardware
// but their spacing is not established here. The values that the engine writes for elements outside
// the tensor do not matter here.
//
// A box {64, rows, panels} of 16-bit elements with the 128-byte swizzle is a PanelTile: one copy
// fills all panels of a tile.
uint32_t tma_box_offset(std::span<const int> box, std::span<const int> at, Swizzle swizzle,
                        int element_bytes);

}  // namespace nautilus::layout
