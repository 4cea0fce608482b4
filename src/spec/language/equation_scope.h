// SPDX-License-Identifier: Apache-2.0
// Axes of one equation while it is elaborated: who binds them, where their extents come from.
//
// Every axis that the text introduces is a *root* with one extent. A function such as softmax
// reduces over an axis of its caller; each such reduction gets a fresh variable of the same root,
// so expansion never captures a name. Extents are inferred from direct uses, which may come after
// the first place that needs them: until then an expression contains a placeholder, replaced when
// the equation is complete.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "diag/diagnostic.h"
#include "expr/bounds/bounds.h"
#include "expr/walk.h"
#include "ir/op.h"

namespace nautilus::spec {

class EquationScope {
 public:
  EquationScope(ir::Name equation, expr::ExprPool& pool, diag::Sink& sink)
      : equation_(equation), pool_(pool), sink_(sink) {}
  // For expressions outside equations (sizes, defaults, facts): no axes.
  EquationScope(expr::ExprPool& pool, diag::Sink& sink) : pool_(pool), sink_(sink) {}
  bool is_equation() const { return static_cast<bool>(equation_); }

  // A new root; `extent` null means to be inferred. Returns its variable.
  ir::Expr add_root(std::string_view name, diag::Span span, ir::Expr extent);
  // Another variable of the root of `var`.
  ir::Expr fresh(ir::Expr var);
  bool is_axis(ir::Expr var) const { return root_of_.contains(var); }
  // Whether the expression depends on an axis.
  bool has_axis(ir::Expr e) const;
  // The extent of an axis, or its placeholder.
  ir::Expr extent(ir::Expr var) const { return roots_[root_of_.at(var)].placeholder; }
  // Whether the text introduces the axis `a` before `b`: axes of the left side come first.
  bool is_before(ir::Expr a, ir::Expr b) const { return root_of_.at(a) < root_of_.at(b); }
  bool has_written_extent(ir::Expr var) const { return roots_[root_of_.at(var)].is_written; }
  // Bound axes of `body` renamed to the names the text gave them, where nothing else in it has that
  // name, nor one of the `axes` around it.
  ir::Expr with_written_names(ir::Expr body, const ir::Axes& axes) const;

  // `var` stands alone in a position of extent `extent`.
  void use(ir::Expr var, ir::Expr extent, diag::Span span, std::string where);

  // One of the two bounds the other: each has the other's extent if nothing else determines it.
  void link(ir::Expr a, ir::Expr b) { links_.emplace_back(root_of_.at(a), root_of_.at(b)); }

  // Decides every extent; false if something was reported. Extents are one where they are the same
  // expression, or `facts` say so.
  bool solve(const expr::Facts& facts);
  const expr::Substitution& solution() const { return solution_; }
  // Of the k-th axis that was introduced, once it is solved; null if that did not succeed.
  ir::Expr extent_of_root(size_t k) const;

  ir::Name equation() const { return equation_; }

 private:
  struct Use {
    ir::Expr extent;
    diag::Span span;
    std::string where;
  };
  struct Root {
    std::string name;
    diag::Span span;
    ir::Expr var;
    ir::Expr placeholder;  // the extent itself if it is written
    bool is_written;
    std::vector<Use> uses;
  };
  std::string unique(std::string_view name);
  // Gives roots without a use the extents of those they are linked with.
  void use_links();

  ir::Name equation_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  std::vector<Root> roots_;
  std::unordered_map<ir::Expr, size_t> root_of_;
  std::vector<std::pair<size_t, size_t>> links_;
  std::set<std::string> names_;
  expr::Substitution solution_;
};

}  // namespace nautilus::spec
