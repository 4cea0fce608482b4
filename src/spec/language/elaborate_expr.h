// SPDX-License-Identifier: Apache-2.0
// Expressions of the math language to typed expressions: names, promotion, reductions, function
// expansion.
//
// A let or an argument that is used more than once and is not a single element becomes an equation
// of its own, so that shared expressions stay shared and texts cannot grow exponentially. It stays
// inline under a guard: taken out of `where(i > 0, f(X[i - 1] * 2), 0)` it would read outside of X.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "spec/language/equation_scope.h"
#include "spec/language/promote.h"
#include "spec/language/reduced_terms.h"
#include "spec/language/symbols.h"
#include "spec/ops.h"

namespace nautilus::spec {

class ExprElaborator {
 public:
  // A program's own functions hide those of the library; the library sees only itself.
  ExprElaborator(Symbols& symbols, const Symbols& library, EquationScope& scope,
                 expr::ExprPool& pool, diag::Sink& sink)
      : symbols_(symbols), library_(library), scope_(scope), pool_(pool), sink_(sink) {
    frames_.emplace_back();
  }

  // Makes an axis visible by the name it has in the text.
  void bind_axis(std::string_view name, ir::Expr var) {
    frames_.back().axes.emplace_back(name, var);
  }

  Typed elaborate(const expr::Syntax& s);
  // An integer expression of sizes and integer scalars only: dimensions, extents.
  ir::Expr elaborate_size(const expr::Syntax& s);

  // Equations taken out of this one, in the order they are needed. Extents may be placeholders
  // still.
  const std::vector<Let>& taken_out() const { return taken_out_; }
  // Where each tensor read stands in the text.
  const std::unordered_map<ir::Expr, diag::Span>& read_spans() const { return read_spans_; }

 private:
  struct Frame {
    std::vector<std::pair<std::string_view, ir::Expr>> axes;
    std::map<std::string_view, Typed> values;  // parameters and lets
    const FunctionSyntax* function = nullptr;  // null: the equation itself
    diag::Span call;
  };

  Typed dispatch(const expr::Syntax& s);
  Typed name(const expr::Syntax& s);
  Typed read(const expr::Syntax& s);
  // An element of a state; outside the steps, the initial element.
  Typed read_state(const Symbol& symbol, ir::Expr read);
  Typed call(const expr::Syntax& s);
  Typed call_builtin(const expr::Syntax& s, expr::Op op);
  Typed call_function(const expr::Syntax& s, const FunctionSyntax& f);
  bool bind_axes(const expr::Syntax& s, const FunctionSyntax& f, Frame& frame);
  Typed cast(const expr::Syntax& s, expr::DType dtype);
  Typed select(const expr::Syntax& s);
  Typed prefix(const expr::Syntax& s);
  Typed infix(const expr::Syntax& s);
  Typed binary(const expr::Syntax& s, Typed x, Typed y);
  Typed reduce(const expr::Syntax& s);
  bool ranges(const expr::Syntax& s, std::vector<Range>& out);
  bool copied_range(const expr::SyntaxAxis& a, std::vector<Range>& out);
  bool bind_range(const expr::SyntaxAxis& a, ir::Expr extent, std::vector<Range>& out);
  Typed reduce_body(const expr::Syntax& s, size_t axes, Typed body);
  ir::Expr reduced(const expr::Syntax& s, const std::vector<Range>& ranges, Typed body,
                   ir::Expr init);
  ir::Expr rank(const expr::Syntax& s);
  Typed ranked(const expr::Syntax& s, const std::vector<Range>& ranges, Typed body, ir::Expr rank);
  Typed let(const expr::Syntax& s);
  Typed repeat(const expr::Syntax& s);
  // A table is an equation of its own, so that its reads are checked like others.
  Typed table(const expr::Syntax& s);
  std::vector<Typed> table_elements(const expr::Syntax& s);
  // A name for an equation that is taken out of this one; `part` says what it is.
  std::string taken_out_name(std::string_view part) const;
  bool can_bind(std::string_view name, diag::Span span);
  ir::Expr index(const expr::Syntax& s, std::string_view what);
  bool has_axis(ir::Expr e) const;
  // Whether e may be a size; reported if it may not.
  bool is_size(const expr::Syntax& s, ir::Expr e);

  ir::Expr find_axis(std::string_view name) const;
  // The axes that a name in brackets stands for: several for the last axis of a function that was
  // called with more axes than it declares, else one or none.
  std::vector<ir::Expr> find_axes(std::string_view name) const;
  const Symbol* find_function(std::string_view name) const;
  bool is_function_axis(std::string_view name) const;
  // The axes of a value in the order of the element read that has the most of them, so that a
  // tensor of the value has the memory order of its operand; the others in the order of the text.
  std::vector<ir::Expr> axes_as_they_lie(ir::Expr value) const;
  Typed share(Typed value, std::string_view name, int uses, bool is_always_guarded,
              bool is_round = false);
  // Makes the value an equation of its own; its element at the value's axes.
  ir::Expr take_out(ir::Expr value, std::string_view part);
  ir::Expr rename(ir::Expr e, ir::Expr from, ir::Expr to);
  bool is_reasonable(ir::Expr e, diag::Span span);
  Typed fail() const { return {}; }
  Typed undefined(const expr::Syntax& s);
  Typed mismatch(const expr::Syntax& s, Typed x, Typed y);
  Typed wrong_dtype(const expr::Syntax& s, expr::DType dtype);
  std::vector<std::string> visible_names() const;

  Symbols& symbols_;
  const Symbols& library_;
  EquationScope& scope_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  ReducedTerms terms_{scope_, pool_};
  std::vector<Frame> frames_;
  int guards_ = 0;
  int integer_context_ = 0;  // inside an index or a size, where `/` means floor division
  int64_t visits_ = 0;
  std::vector<Let> taken_out_;
  std::unordered_map<ir::Expr, ir::Expr> shared_;
  std::unordered_map<ir::Expr, diag::Span> read_spans_;
};

// How often a name occurs in an expression, and whether every occurrence is in a branch of `where`,
// to the right of `and` or `or`, or in a reduction with a bound.
struct Occurrences {
  int count = 0;
  bool is_always_guarded = true;
};
Occurrences occurrences(const expr::Syntax& s, std::string_view name);

}  // namespace nautilus::spec
