// SPDX-License-Identifier: Apache-2.0
// The registers and the shared memory that a tile kernel will need, from the statements of its
// fusion and its sizes alone. This file finds the tiles; estimate/ counts what each needs.
//
// Shared memory is counted with the fewest slots that make the kernel worthwhile; lowering gives
// rings more where there is room. driver/kernels/tile_use_test.cc compares both with finished
// kernels.
#pragma once

#include "estimate/shared_memory.h"
#include "schedule/fusion/tiling.h"

namespace nautilus::schedule {

// The properties of a fusion that decide which sizes fit.
struct FusionShape {
  bool has_cut = false;            // columns that no tile holds whole
  bool has_streamed_tile = false;  // a product inside the loop: register work between products
  bool has_product_alone = true;   // every rolled reduction is a product of operands from memory
  bool has_taps = false;           // such products also have steps along short axes
  int64_t sums = 0;                // products that the loop adds up
};
FusionShape shape_of(const Fusion& fusion);

// Elements of a tile along an axis.
int64_t tile_width(const Fusion& fusion, Expr axis, const TileConfig& sizes);

// Registers of a thread in tiles.
struct TileRegisters {
  int64_t sums = 0;   // accumulators of rolled products
  int64_t step = 0;   // products of a step and computed operands, with their rounded copies
  int64_t lines = 0;  // tensors along the streamed axis alone, such as a bias of the keys

  int64_t all() const { return sums + step + lines; }
};
TileRegisters tile_registers(const Fusion& fusion, const TileConfig& sizes);

// The most registers that tiles may have. `is_mixed`: with register work between products,
// temporaries need more registers in addition to tiles while one or two groups have the
// multiprocessor for themselves.
int64_t most_tile_registers(const Fusion& fusion, const TileConfig& sizes, bool is_mixed);

// Rings of operands and of tensors that element-wise work reads in boxes, and the staging buffer of
// the results.
estimate::SharedUse shared_use(const Fusion& fusion, const TileConfig& sizes);

}  // namespace nautilus::schedule
