// SPDX-License-Identifier: Apache-2.0
// A tile nest, what its lowering knows of the names of VR-tile, and how it writes expressions of
// them as expressions of MA-tile.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "expr/walk.h"
#include "lower/kernel/lowered_kernel.h"
#include "matile/ops.h"
#include "vrtile/ops.h"

namespace nautilus::lower {

// A grid nest of a program, and the name of its kernel.
struct GridNest {
  const ir::Program& program;
  const ir::Op& op;
  std::string_view name;
};

// What a tile of VR-tile became.
struct TileValue {
  enum class Kind : uint8_t {
    Register,  // a register tile
    Load,      // elements of a tensor, read where they are used
    Inline,    // an expression, written where it is used
    Vote,      // a condition of the rows of a warp
  };
  Kind kind = Kind::Register;
  ir::Name name;         // Register, Vote
  ir::TensorType type;   // Register
  int64_t rows = 0;      // Vote
  ir::Axes axes;         // Load, Inline
  expr::Expr value;      // Load, Inline: with the names of MA-tile
  expr::Expr condition;  // Load
  expr::Expr other;      // Load
  // Load that products use:
  ir::Name slot_tile;
  bool is_transposed = false;  // the slot tile holds the tile's columns as rows
  expr::Expr first_row;        // of the group in a slot tile that all groups share
  // Load that element-wise work uses: a box of its tensor, which the copy engine may bring instead.
  const ir::Block* box_of = nullptr;  // the block of the load; null if it is no such box
  // The same for a piece of one row, which becomes an f32 tile along columns.
  const ir::Block* row_piece_of = nullptr;
};

class TileNames {
 public:
  TileNames(FreshNames& names, expr::ExprPool& pool) : names_(names), pool_(pool) {}

  TileValue* find(ir::Name name) {
    const auto it = values_.find(name);
    return it == values_.end() ? nullptr : &it->second;
  }
  void define(ir::Name name, TileValue value) { values_.insert_or_assign(name, std::move(value)); }
  // A scalar of the nest under a new name.
  ir::Name define_scalar(ir::Name name, expr::DType dtype);

  // The expression with the names of MA-tile; axes by the substitution. Empty (and why) if it uses
  // a tile in a way that has no counterpart.
  expr::Expr written(expr::Expr e, const expr::Substitution& axes, std::string* why);
  expr::Expr scalar(expr::Expr e) { return expr::substitute(pool_, e, scalars_); }

 private:
  expr::Expr widened(expr::Expr e);

  FreshNames& names_;
  expr::ExprPool& pool_;
  std::unordered_map<ir::Name, TileValue> values_;
  expr::Substitution scalars_;
};

}  // namespace nautilus::lower
