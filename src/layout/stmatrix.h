// SPDX-License-Identifier: Apache-2.0
//
// stmatrix and ldmatrix: between register fragments and rows of 16 bytes in shared memory.
//
// The instructions move up to four 8 x 8 matrices of 16-bit elements, register i of each lane
// belonging to matrix i (PTX ISA, ldmatrix and stmatrix, .m8n8.b16):
//   * lane L supplies the address of row L % 8 of matrix L / 8 (with .x2, lanes 0..15 count)
//   * lane L holds elements (L / 4, 2 * (L % 4)) and (L / 4, 2 * (L % 4) + 1) of each matrix in the
//     two halves of its register; with .trans, elements (2 * (L % 4), L / 4) and (2 * (L % 4) + 1,
//     L / 4), rows being rows in memory
// The fragment of a matrix without .trans is that of an 8 x 8 block of an accumulator rounded to 16
// bits: row g, columns 2t and 2t+1.
//
// The epilogue of a kernel stores acc(n) in steps of 16 columns. With p the number of a packed pair
// of registers (accumulator elements 2p and 2p+1, so p = 2*j + h), step s stores the pairs 4s..4s+3
// as matrices 0..3:
//
//     matrix 0   rows 0-7, columns 0-7         matrix 2   rows 0-7, columns 8-15
//     matrix 1   rows 8-15, columns 0-7        matrix 3   rows 8-15, columns 8-15
//
// of the warp's 16 rows. These are also the registers of an A operand, in the same order, which is
// why ldmatrix from the same addresses loads afrag(k). If n is an odd multiple of 8, the last step
// has two matrices. With `transposed`, the tile in memory has the accumulator's columns as rows.
#pragma once

#include <cstdint>

#include "layout/swizzle.h"

namespace nautilus::layout {

// An element of an 8 x 8 matrix as it lies in memory.
struct MatrixElement {
  int row = 0;
  int col = 0;

  friend bool operator==(const MatrixElement&, const MatrixElement&) = default;
};

// Which element of its matrix half `half` (0 low, 1 high) of a lane's register is.
MatrixElement matrix_element(int lane, int half, bool transposed = false);

// A fragment of 64 rows (one warp group) and `cols` columns, in the registers of acc(cols) rounded
// to 16 bits or of afrag(cols), and the tile in shared memory it is stored to or loaded from.
struct FragmentStore {
  PanelTile tile;  // 16-bit elements; offsets are from its beginning
  int cols = 0;
  int first_row = 0;  // where the fragment's element (0, 0) is in the tile; multiples of 8
  int first_col = 0;
  bool transposed = false;

  int steps() const { return (cols + 15) / 16; }
  int pairs() const { return cols / 4; }  // packed registers per thread
};

// How many matrices step `step` moves: 4, or 2 in a last half step. Its first register is 4 * step.
int matrices_of_step(const FragmentStore& store, int step);

// The offset of the row that a lane names in a step; the lane must be below 8 * matrices_of_step.
uint32_t lane_row_offset(const FragmentStore& store, int warp, int lane, int step);

// Where half `half` of packed register `pair` of a lane goes: the offset of its 16-bit element.
uint32_t element_offset(const FragmentStore& store, int warp, int lane, int pair, int half);

}  // namespace nautilus::layout
