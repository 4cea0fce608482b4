// SPDX-License-Identifier: Apache-2.0
// One row kernel (row_kernel.h) while it is built. The parts are in row_kernel.cc (the kernel
// around the work, rows and columns), row_values.cc, row_statements.cc and row_forms.cc.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "lower/kernel/lowered_kernel.h"
#include "lower/rows/row_answers.h"
#include "lower/rows/row_group.h"
#include "lower/rows/row_variants.h"
#include "matile/ops.h"

namespace nautilus::lower {

class RowLowering {
 public:
  RowLowering(const RowContext& context, RowVariant variant, ir::Name kernel, RowAnswers& answers)
      : group_(context.group),
        choice_(context.choice()),
        kept_(context.kept),
        buffers_(context.buffers),
        facts_(context.facts),
        v_(std::move(variant)),
        shape_(v_.shape),
        kernel_(kernel),
        answers_(answers),
        names_(context.names),
        pool_(context.pool) {}

  matile::Kernel run();
  // Whether the tiles leave registers for the rest; known after run().
  bool fits() const {
    return shape_.groups == 1 ||
           row_registers() + choice_.registers_beside <= choice_.alone_registers;
  }
  // Whether a reduction has a condition for each of its terms; known after run().
  bool has_conditions() const { return has_conditions_; }
  // Of tiles: rows, or blocks of their columns.
  expr::Expr count() const;

 private:
  bool is_kept(const RowStatement& s) const { return kept_.contains(std::string(s.target.str())); }

  int64_t row_registers() const;
  RowUse use() const { return {shape_, row_registers()}; }
  int64_t tile_registers(expr::DType dtype, int64_t columns) const {
    return row_tile_registers(dtype, columns, choice_.threads);
  }

  // row_kernel.cc: rows and columns.
  // Without reductions a row need not stay together: a CTA has a block of its columns.
  bool is_blocked() const { return has_elements_only(group_); }
  expr::Expr steps() const;
  ir::Name decode_block(ir::Block& body);
  ir::Name decode_row(ir::Block& body);
  void decode(expr::Expr rest, ir::Block& body);
  bool is_whole() const {
    return shape_.is_held() && v_.limit.is_int(shape_.groups * shape_.columns);
  }
  // The column of the row that a column of the tiles means: groups have neighbouring parts of it.
  expr::Expr in_row(expr::Expr column);
  expr::Expr in_range() {
    const expr::Expr in_row = pool_.binary(expr::Op::Lt, at_, v_.limit);
    return is_walked_ ? pool_.binary(expr::Op::And, is_walked_, in_row) : in_row;
  }
  ir::Axes columns() { return {{column_.name(), pool_.integer(extent_)}}; }

  // row_values.cc: which reads are kept in tiles, values in terms of them.
  ir::Name add_tile(std::string_view stem, expr::DType dtype, bool is_row_vector);
  bool is_row_read(expr::Expr e, bool is_always);
  bool is_inside(expr::Expr read);
  void collect_row_reads(expr::Expr e, bool is_always, std::vector<expr::Expr>& out);
  const expr::Expr* element(expr::Expr read) const;
  bool own(expr::Expr read) const;
  void choose_padding();
  bool vanishes(const RowStatement& s, double padding);
  expr::Expr rewrite(expr::Expr e);
  bool is_tile(ir::Name name) const;
  bool has_direct_reads(expr::Expr rewritten);
  bool reads_row_vector(expr::Expr rewritten);
  expr::Expr constant(expr::Reducer reducer);
  bool is_broadcast(expr::Expr read);
  void load(expr::Expr read, ir::Block& out);
  expr::Expr as_row_vector(expr::Expr rewritten, std::string_view stem, ir::Block& out);
  expr::Expr hoisted(expr::Expr e);
  expr::Expr hoist(expr::Expr e);
  bool is_number(expr::Expr e) const;

  // row_statements.cc
  void fold(const RowStatement& s, ir::Name acc, bool is_first, ir::Block& out);
  void finish(const RowStatement& s, ir::Name acc, ir::Block& out);
  void number(const RowStatement& s, ir::Block& out);
  void put_number(const RowStatement& s, ir::Name tile, ir::Block& out);
  void put_element(const RowStatement& s, ir::Block& out);
  void put_pieces(const RowStatement& s, ir::Block& out);

  // row_forms.cc
  // A register has two elements of 16 bits.
  int64_t piece() const { return choice_.threads * std::max<int64_t>(shape_.by, 2); }
  bool is_late(expr::Expr read) const;
  void find_late(const std::vector<expr::Expr>& reads);
  int uses_after(size_t index) const;
  bool can_be_held(size_t index) const;
  bool is_read_after(size_t index, expr::Expr read) const;
  expr::Expr replaced_by(size_t index, const std::vector<expr::Expr>& reads) const;
  bool stays_unpacked(ir::Name reduction, std::span<const expr::Expr> reads);
  void rematerialize(std::span<const expr::Expr> reads, ir::Block& out);
  void resident(ir::Block& out);
  void block(ir::Block& out);
  void walking(ir::Block& out);
  bool depends(expr::Expr value, const std::set<std::string>& numbers) const;
  void walk(size_t begin, size_t end, ir::Name count, ir::Block& out);
  void walk_rows(size_t begin, size_t end, const std::vector<ir::Name>& accs, matile::Loop& loop);

  struct ReadOrder {
    bool operator()(const std::pair<expr::Expr, bool>& a,
                    const std::pair<expr::Expr, bool>& b) const {
      return std::make_pair(a.first.node(), a.second) < std::make_pair(b.first.node(), b.second);
    }
  };

  const RowGroup& group_;
  const target::Rows& choice_;
  const std::set<std::string>& kept_;
  const std::map<std::string, ir::TensorType>& buffers_;
  const expr::Facts& facts_;
  RowVariant v_;
  RowShape shape_;
  ir::Name kernel_;
  RowAnswers& answers_;
  FreshNames names_;
  expr::ExprPool& pool_;
  expr::Expr column_;                                 // of the tiles
  expr::Expr at_;                                     // the column of the row that it means
  expr::Expr place_;                                  // the column of tiles that hold the whole row
  ir::Name part_;                                     // of the row: the group's number
  int64_t extent_ = 0;                                // of the ops that are written
  std::vector<expr::Expr> late_;                      // reads that are loaded piece by piece
  ir::Block* main_ = nullptr;                         // the block of a row: outside walks
  std::unordered_map<expr::Expr, ir::Name> hoisted_;  // numbers that values have in common
  std::unordered_map<expr::Expr, expr::Expr> without_numbers_;
  expr::Expr is_walked_;  // whether a row of a step exists; or null
  double padding_ = 0;
  std::set<std::pair<expr::Expr, bool>, ReadOrder> visited_;  // by collect_row_reads
  std::vector<std::pair<ir::Name, ir::TensorType>> tiles_;
  bool has_conditions_ = false;
  std::unordered_map<expr::Expr, ir::Name> loaded_;  // reads that are tiles
  std::map<std::string, ir::Name> numbers_;          // of the row
  std::map<std::string, ir::Name> kept_elements_;    // as tiles
  std::map<std::string, expr::Expr> elements_;       // computed where they are read
};

}  // namespace nautilus::lower
