// SPDX-License-Identifier: Apache-2.0
// One grid nest of VR-tile as a kernel in nest form (vrtile_to_matile.h says what becomes what).
// tile_lowering.cc has the nest and its loops, tile_values.cc what is computed, tile_loads.cc and
// tile_takes.cc what is read from tensors, tile_stores.cc what is written.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decision/choice.h"
#include "expr/rules/simplify.h"
#include "lower/kernel/lowered_kernel.h"
#include "lower/tiles/tile_grid.h"
#include "lower/tiles/tile_nest.h"
#include "lower/tiles/tile_view.h"
#include "lower/tiles/vrtile_to_matile.h"

namespace nautilus::lower {

// How an op of a block and those after it use a tile.
struct Uses {
  bool is_operand = false;
  bool is_a = false;
  bool is_b = false;
  bool in_expressions = false;
  size_t last = 0;  // op of the block
};

// How boxes of tensors arrive that only element-wise work uses, where no line says it.
using decision::OperandPath;

// The decisions that this step takes.
struct NestChoices {
  explicit NestChoices(ir::PassContext& context)
      : groups(context),
        order(context),
        source(context),
        fetch(context),
        bring(context),
        promote(context) {}

  void begin(ir::Block& body);
  bool end();

  decision::Choice<decision::Groups> groups;
  decision::Choice<decision::TileOrder> order;
  decision::Choice<decision::TileSource> source;
  decision::Choice<decision::Fetch> fetch;
  decision::OperandChoice<decision::Bring> bring;
  decision::OperandChoice<decision::Promote> promote;
};

class NestLowering {
 public:
  NestLowering(const ir::Program& program, const ir::Op& nest, std::string_view name,
               FreshNames& names, ir::PassContext& context, OperandPath usual_path,
               std::string* why, const CtaPacking& packing = {});
  std::optional<LoweredKernel> run();

 private:
  std::nullopt_t fail(std::string reason);
  bool refuse(std::string reason);
  static bool has_only_product_loops(const ir::Block& block);
  // Every tile has as many steps: groups that take turns jump over the others'.
  bool has_equal_tiles(const vrtile::Par& grid, const ir::Block& work) const;
  // Who works on the tiles, and how they are numbered.
  bool choose_groups(const vrtile::Par& grid, const vrtile::Par* groups, const ir::Block& work);
  bool choose_grid(const ir::Axes& axes, GridFacts facts);
  // Whether the copy engine brings what element-wise work reads of a tensor.
  bool is_copied(ir::Name tensor);
  bool fetches_early(const vrtile::For& loop);
  void promotes(ir::Name map, bool is_needed_once);
  void choose_promotions();
  GridFacts grid_facts(const ir::Axes& axes, const ir::Block& body) const;
  // A register tile for a value of VR-tile.
  const TileValue& new_tile(ir::Name stem, const ir::TensorType& type);
  ir::Name new_register(std::string_view stem, const ir::TensorType& type);
  ir::Axes own_axes(const ir::TensorType& type) const;
  static bool is_register_type(const ir::TensorType& type);
  expr::Substitution axes_to_own(const ir::Axes& axes) const;
  void copy(ir::Name to, const ir::TensorType& type, ir::Name from, ir::Block& out) const;
  struct Frame {
    const ir::Block* block;
    size_t at;
  };
  bool block(const ir::Block& ops, ir::Block& out, bool is_loop);
  bool visit(const ir::Block& ops, size_t k, ir::Block& out, bool is_loop);
  void scalar_let(const ir::Op& op, ir::Block& out);
  bool load(const vrtile::Load& op, const ir::Block& ops, size_t k, ir::Block& out, bool is_loop);
  bool fetch(const vrtile::Load& op, const Uses& uses, TileValue& value, ir::Block& out,
             bool is_loop);
  // Loads the elements one by one into a register tile.
  bool gather(const vrtile::Load& op, TileValue& value, ir::Block& out);
  bool depends_on_tile(expr::Expr e, expr::Expr tile) const;
  bool is_read_once(const TileElements& elements) const;
  bool is_piece_of_rows(const TileElements& elements, const TileView& view) const;
  // The rows of all groups at once, if `row` and those of the others are 64 apart: makes `row` the
  // first of them and remembers where the group's own begin.
  void join_groups(expr::Expr& row, int& rows, TileValue& value);
  // Tiles in shared memory that an op uses element by element go to registers (tile_takes.cc), and
  // lines that `value` reads along `column` alone (null: none).
  bool take_operands(const std::vector<ir::Name>& used, expr::Expr value, expr::Expr column,
                     ir::Block& out);
  TileElements elements_of(const TileValue& value) const;
  bool is_box(const TileValue& value);
  bool take_box(ir::Name name, TileValue& value, size_t last, ir::Block& out);
  // A loop with one product, of an operand that is computed: everything it loads is needed for the
  // product, and arrives at once.
  static bool has_one_computed_product(const ir::Block& body);
  static ir::Block loads_first(const ir::Block& body);
  bool is_eager() const;
  // Every op of the block that reads the line does so along its columns.
  bool runs_along_columns(ir::Name line, const ir::Block& body) const;
  bool is_row_piece(const TileValue& value);
  // The part of a line, fetched here.
  ir::Name fetch_row_piece(ir::Name name, const TileValue& value, size_t last, ir::Block& out);
  // An f32 tile of `extent` columns of it.
  ir::Name take_row_piece(ir::Name name, ir::Name part, int64_t extent, expr::Expr cols,
                          ir::Block& out);
  // Lines that the op reads along its columns alone go to registers.
  void take_row_pieces(expr::Expr value, expr::Expr column, ir::Block& out, ir::Block& takes);
  // A panel of a box for the panel of a store; gives the register tile.
  ir::Name take_panel(ir::Name name, const TileValue& value, expr::Expr row_offset,
                      expr::Expr col_offset, ir::Block& out, ir::Block& takes);
  static bool is_zero(expr::Expr e);
  // Maps of one shape of one tensor are one; the coordinates behind rows and panels differ.
  std::optional<TileMap> map_for(const TileElements& elements, const TileView& view, int rows,
                                 int cols);
  struct PartUse {
    ir::Name name;
    std::string map;
    std::vector<std::pair<const ir::Block*, size_t>> busy;  // last use in a block
  };
  // Loads of one map share a part unless both tiles are needed at a time.
  ir::Name part_for(ir::Name load, const matile::Map& map, int rows, int cols, size_t last);
  bool set(const vrtile::Set& op, const ir::Block& ops, size_t k, ir::Block& out);
  // A tile of the last block that only stores use, and that is stored panel by panel.
  bool is_deferred(const vrtile::Set& op, const ir::Block& ops, size_t k) const;
  static bool is_same_shape(const ir::Axes& a, const ir::Axes& b);
  // Every read of the tile is at the op's own axes.
  static bool is_identity(expr::Expr value, ir::Name tile, const ir::Axes& axes);
  bool reduce(const vrtile::Reduce& op, const std::vector<ir::Name>& used, ir::Block& out);
  // `any[x < 16] c[16 * g + x]` for all g: a warp holds 16 rows of a tile of 64.
  bool vote(const vrtile::Reduce& op, ir::Block& out);
  bool dot(const vrtile::Dot& op, ir::Block& out);
  bool loop(const vrtile::For& op, ir::Block& out);
  bool flush_deferred();
  // Stored by the copy engine, in panels of 64 columns.
  bool stores_panels(const vrtile::Store& op) const;
  // Whole rows of a tensor: one box.
  bool stores_whole(const vrtile::Store& op) const;
  bool store(const vrtile::Store& op, const std::vector<ir::Name>& used, ir::Block& out);
  ir::Axes own_axes_of(const ir::Axes& axes) const;
  bool store_whole(const vrtile::Store& op, const TileElements& elements, const TileView& view,
                   ir::Block& out);
  bool store_panels(const vrtile::Store& op, const TileElements& elements, const TileView& view,
                    ir::Block& out);
  // Boxes that the values of a panel store read at exactly the panel's elements, and lines that
  // they read along its columns.
  struct PanelLoads {
    std::vector<ir::Name> boxes;
    std::vector<ir::Name> lines;
  };
  PanelLoads panel_loads(const vrtile::Store& op);
  bool put(const vrtile::Store& op, ir::Block& out);
  bool reads_tile(expr::Expr value, const ir::TensorType& type) const;
  bool is_declared(ir::Name name, const ir::TensorType& type) const;
  std::optional<LoweredKernel> assemble(ir::Block body);
  const ir::Program& program_;
  // The shape of MA-tile's own tiles: 16-bit columns of a panel, rows of a group's accumulator.
  int panel() const { return target_.copies.panel_columns(); }
  int group_rows() const { return target_.matrix.rows; }

  const target::Target& target_;
  const ir::Op& nest_;
  std::string_view kernel_name_;
  FreshNames& names_;
  expr::ExprPool& pool_;
  std::string* why_;
  TileNames tiles_;
  expr::Simplifier simplifier_;
  CtaPacking packing_;
  std::map<std::string, ir::TensorType, std::less<>> tensors_;
  expr::Divisors divisors_;
  TileGrid grid_;
  ir::Axes tile_axes_;
  int64_t groups_ = 1;
  OperandPath usual_path_;
  NestChoices choices_;
  bool alternates_ = false;
  bool has_dot_ = false;
  ir::Name group_index_;
  expr::Expr own_group_;  // null if the tile does not depend on the group
  ir::Name role_name_;
  expr::Expr axis_[2];
  std::vector<Frame> frames_;
  ir::Block declared_;
  ir::Block parts_;
  ir::Axes used_axes_;  // of the tiles; another one has one place, or none
  // Of the loops so far, by their variables.
  std::unordered_map<expr::Expr, std::pair<expr::Expr, expr::Expr>> loop_bounds_;
  ir::Block map_ops_;
  std::map<std::string, int64_t> promotions_;  // of maps that are fetched from
  ir::Block lines_;                            // that later passes read
  std::map<std::string, TileMap> maps_;
  std::vector<PartUse> part_uses_;
  std::map<std::string, matile::Map> row_piece_maps_;
  std::deque<ir::Block> reordered_;
  std::vector<vrtile::Set> deferred_;
  bool stored_panels_ = false;
};

}  // namespace nautilus::lower
