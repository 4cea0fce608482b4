// SPDX-License-Identifier: Apache-2.0
//
// Element offsets are derived from the row addresses that lanes supply, as the instruction does it,
// and not from the accumulator's layout: the tests compare the two.
#include "layout/stmatrix.h"

#include "base/check.h"

namespace nautilus::layout {

namespace {

void check(const FragmentStore& store, int warp, int step) {
  NAUT_CHECK(store.tile.element_bytes == 2, "stmatrix of {}-byte elements",
             store.tile.element_bytes);
  NAUT_CHECK(store.cols >= 8 && store.cols % 8 == 0, "fragment of {} columns", store.cols);
  NAUT_CHECK(store.first_row % 8 == 0 && store.first_col % 8 == 0, "fragment at ({}, {})",
             store.first_row, store.first_col);
  NAUT_CHECK(warp >= 0 && warp < 4, "warp {}", warp);
  NAUT_CHECK(step >= 0 && step < store.steps(), "step {} of {}", step, store.steps());
}

}  // namespace

MatrixElement matrix_element(int lane, int half, bool transposed) {
  NAUT_CHECK(lane >= 0 && lane < 32 && half >= 0 && half < 2, "half {} of lane {}", half, lane);
  const int g = lane / 4;
  const int t = lane % 4;
  if (transposed) return {2 * t + half, g};
  return {g, 2 * t + half};
}

int matrices_of_step(const FragmentStore& store, int step) {
  check(store, 0, step);
  return store.cols - 16 * step >= 16 ? 4 : 2;
}

uint32_t lane_row_offset(const FragmentStore& store, int warp, int lane, int step) {
  check(store, warp, step);
  NAUT_CHECK(lane >= 0 && lane < 8 * matrices_of_step(store, step), "lane {} names no row", lane);
  const int matrix = lane / 8;
  // The 8 x 8 block of the fragment that this matrix is.
  const int row = 16 * warp + 8 * (matrix % 2);
  const int col = 16 * step + 8 * (matrix / 2);
  if (store.transposed) {
    return store.tile.offset(store.first_row + col + lane % 8, store.first_col + row);
  }
  return store.tile.offset(store.first_row + row + lane % 8, store.first_col + col);
}

uint32_t element_offset(const FragmentStore& store, int warp, int lane, int pair, int half) {
  NAUT_CHECK(pair >= 0 && pair < store.pairs(), "register {} of {}", pair, store.pairs());
  const MatrixElement element = matrix_element(lane, half, store.transposed);
  // The row of a matrix is contiguous from the address of the lane that names it: 16 bytes, which a
  // swizzle does not split.
  const int naming_lane = 8 * (pair % 4) + element.row;
  return lane_row_offset(store, warp, naming_lane, pair / 4) +
         static_cast<uint32_t>(2 * element.col);
}

}  // namespace nautilus::layout
