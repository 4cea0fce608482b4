// SPDX-License-Identifier: Apache-2.0
// What all parts of the lowering of one nest share (tile_lowering.h): the program and the names
// that it knows, the register tiles of the kernel, and the axes that its ops are written in.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "expr/bounds/divisors.h"
#include "lower/tiles/tile_nest.h"
#include "lower/tiles/tile_view.h"
#include "target/target.h"

namespace nautilus::lower {

// A block of the nest that is being lowered, and the op in it.
struct NestFrame {
  const ir::Block* block;
  size_t at = 0;
  bool is_loop = false;
  bool is_eager = false;      // everything that it loads arrives at once
  bool may_be_eager = false;  // a line says whether it is
};

struct NestScope {
  NestScope(const ir::Program& of, const ir::Op& lowered, FreshNames& given_names,
            expr::ExprPool& given_pool, std::string* reason);

  // The first reason stays.
  std::nullopt_t fail(std::string reason) const;
  bool refuse(std::string reason) const;

  // The expression with the names of MA-tile (tile_nest.h).
  expr::Expr written(expr::Expr e, const expr::Substitution& axes) {
    return tiles.written(e, axes, why);
  }
  ir::Axes own_axes(const ir::TensorType& type) const;
  ir::Axes own_axes(const ir::Axes& axes) const;
  expr::Substitution axes_to_own(const ir::Axes& axes) const;

  static bool is_register_type(const ir::TensorType& type);
  // The same of what a loop hands from step to step: sums of products of integers, too.
  static bool is_carried_type(const ir::TensorType& type);
  // A register tile for a value of VR-tile.
  const TileValue& new_tile(ir::Name stem, const ir::TensorType& type);
  ir::Name new_register(std::string_view stem, const ir::TensorType& type);
  void copy(ir::Name to, const ir::TensorType& type, ir::Name from, ir::Block& out) const;
  // Whether some register tile of this shape is read at the op's own axes.
  bool reads_tile(expr::Expr value, const ir::TensorType& type) const;
  bool is_declared(ir::Name name, const ir::TensorType& type) const;

  // What a load takes of its tensor.
  TileElements elements_of(const TileValue& load) const;
  static bool is_zero(expr::Expr e);

  // The shape of MA-tile's own tiles: 16-bit columns of a panel, rows of a group's accumulator.
  int panel() const { return target.copies.panel_columns(); }
  int group_rows() const { return target.matrix.rows; }

  const ir::Program& program;
  const target::Target& target;
  const ir::Op& nest;
  FreshNames& names;
  expr::ExprPool& pool;
  std::string* why;
  TileNames tiles;
  std::map<std::string, ir::TensorType, std::less<>> tensors;
  expr::Divisors divisors;
  expr::Expr axis[2];
  ir::Block declared;  // register tiles
  std::vector<NestFrame> frames;
  int64_t groups = 1;
  expr::Expr own_group;  // null if the tile does not depend on the group
  bool has_cluster = false;
};

}  // namespace nautilus::lower
