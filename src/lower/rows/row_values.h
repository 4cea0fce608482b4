// SPDX-License-Identifier: Apache-2.0
// Values of a row in terms of its kernel: what stands in tiles (reads that were loaded, numbers,
// elements that are held), and values rewritten to read them there.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "lower/rows/row_scope.h"
#include "matile/ops.h"

namespace nautilus::lower {

class RowValues {
 public:
  explicit RowValues(RowScope& scope) : scope_(scope), group_(scope.group), pool_(scope.pool) {}

  // What a column beyond the row reads.
  void set_padding(double padding) { padding_ = padding; }
  double padding() const { return padding_; }

  void define_number(ir::Name target, ir::Name tile) { numbers_[std::string(target.str())] = tile; }
  // The elements of a statement are computed where they are read, or read from a tile.
  void define_element(const RowStatement& s) { elements_[std::string(s.target.str())] = s.value; }
  void define_held(ir::Name target, ir::Name tile) { held_[std::string(target.str())] = tile; }
  void forget_elements() { elements_.clear(); }
  // The value of an element of the group that is computed again where it is read; or null.
  const expr::Expr* element(expr::Expr read) const;
  // A number of the row, or an element that is computed again.
  bool is_own(expr::Expr read) const;

  // Reads that are loaded piece by piece where elements are written.
  void set_late(expr::Expr read) { late_.push_back(read); }
  bool is_late(expr::Expr read) const;
  bool has_late() const { return !late_.empty(); }

  // Reads that are tiles.
  void load(expr::Expr read, ir::Block& out);
  bool is_loaded(expr::Expr read) const { return loaded_.contains(read); }
  ir::Name loaded(expr::Expr read) const { return loaded_.at(read); }
  void forget_loaded(expr::Expr read) { loaded_.erase(read); }
  using Loaded = std::unordered_map<expr::Expr, ir::Name>;
  // Each part of a step has tiles of its own.
  void exchange_loaded(Loaded& other) { loaded_.swap(other); }
  // All rows read the same.
  bool is_broadcast(expr::Expr read) const;

  // A value in terms of the kernel: tiles instead of reads, the kernel's column.
  expr::Expr rewrite(expr::Expr e) const;
  // Reads of global memory inside a value go beyond the row if nothing keeps them.
  bool has_direct_reads(expr::Expr rewritten) const;
  bool reads_row_vector(expr::Expr rewritten) const;
  // A tile that holds the value, for ops that need one.
  expr::Expr as_row_vector(expr::Expr rewritten, std::string_view stem, ir::Block& out);

 private:
  RowScope& scope_;
  const RowGroup& group_;
  expr::ExprPool& pool_;
  double padding_ = 0;
  std::vector<expr::Expr> late_;
  Loaded loaded_;
  std::map<std::string, ir::Name> numbers_;
  std::map<std::string, ir::Name> held_;  // elements, as tiles
  std::map<std::string, expr::Expr> elements_;
};

}  // namespace nautilus::lower
