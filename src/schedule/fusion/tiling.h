// SPDX-License-Identifier: Apache-2.0
// The sizes of a kernel's tiles, and how an axis of a fusion is written inside it.
#pragma once

#include "ir/flat_name.h"
#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

struct TileConfig {
  int64_t warp_groups = 1;  // that share a tile, each with its own rows
  int64_t rows = 0;         // of a group; more than the matrix unit's only for products alone
  int64_t step = 0;         // of the streamed axis
  int64_t column = 0;       // of column axes that do not fit a tile; 0: none is cut
  int64_t cluster = 1;      // neighbouring tiles that share loaded operands
  int64_t resident = 1;     // tiles that a multiprocessor works on at the same time
  ir::Block lines = {};     // lines of the schedule for the passes of the kernel

  bool operator==(const TileConfig&) const = default;
};

// Outer: one place in a step; the next place after all steps along the streamed axis.
enum class AxisKind : uint8_t { Batch, Row, Stream, Outer, Whole, Cut };

// One axis of a fusion inside the kernel.
struct TileAxis {
  Expr var;  // the axis of the fusion; also the name of its place in a tile
  AxisKind kind = AxisKind::Batch;
  int64_t size = 1;
  Expr extent;
  Expr tile;      // number of the tile or step; null for Batch, Outer and Whole
  Expr position;  // the place of a tile's element along the axis
  Expr in_range;  // the condition that the place is inside the axis; null: always
};

// Names in use. Variables of different kernels may be equal; a buffer is named like nothing else.
struct Names {
  std::set<std::string, std::less<>> buffers;  // and sizes and scalars, as flat names
  std::set<std::string, std::less<>> variables;

  void take(ir::Name buffer) { buffers.insert(ir::flat_name(buffer.str())); }
  // The wished name, with a number appended if it is in use.
  std::string fresh(std::string_view wish);
};

class Tiling {
 public:
  Tiling(const Fusion& fusion, const TileConfig& sizes, expr::ExprPool& pool, Names& names);

  const TileAxis& at(Expr axis) const { return axes_.at(axis); }
  const std::vector<Expr>& order() const { return order_; }
  Expr group_var() const { return group_var_; }  // null: one group
  int64_t group_rows() const { return group_rows_; }
  // First row of the warp group's tile.
  Expr first_row() const { return first_row_; }
  bool has_loop() const { return has_loop_; }

  // The loop along an axis counts places of a list instead of steps: the step is `listed`, which
  // may be beyond the axis.
  void take_steps_from(Expr axis, Expr listed, expr::ExprPool& pool);

  // There are tiles even if the axis is empty: reads and stores along it get a condition.
  void guard(Expr axis, expr::ExprPool& pool);

  // The same with the rows of one warp group as a tile, numbered by `tile`.
  Tiling of_groups(Expr row, Expr tile) const {
    Tiling out = *this;
    TileAxis& t = out.axes_.at(row);
    t.tile = tile;
    t.size = group_rows_;
    return out;
  }

 private:
  std::unordered_map<Expr, TileAxis> axes_;
  std::vector<Expr> order_;
  int64_t group_rows_;
  Expr group_var_;
  Expr first_row_;
  bool has_loop_ = true;
};

// Steps of the kernel's loop; masks are not taken into account.
Expr count_steps(const Fusion& fusion, int64_t step, expr::ExprPool& pool);

// Of an axis of known extent that is streamed: a step that has all of it. Nothing for others.
std::optional<int64_t> longest_step(const Fusion& fusion);

// A step with as many bytes of an operand as `step` has with 16-bit operands, where products reduce
// the streamed axis.
int64_t scaled_step(const Fusion& fusion, int64_t step);

// Whether a step may have this length: whole instructions, and no more than sums and scales allow.
bool is_step(const Fusion& fusion, int64_t step);

// Sizes of one group with the rows of one matrix instruction, and the usual step of products.
TileConfig least_sizes(const Fusion& fusion);

// Sizes that fit registers and shared memory, by the number of values a thread holds.
TileConfig choose_sizes(const Fusion& fusion);

}  // namespace nautilus::schedule
