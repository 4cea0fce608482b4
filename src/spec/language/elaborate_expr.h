// SPDX-License-Identifier: Apache-2.0
// Expressions of the math language to typed expressions, part by part: names, reads, calls of
// functions, which are written out, lets, rounds and tables. Operators (operators.h) and reductions
// (elaborate_reduce.h) are types of their own.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "spec/language/elaborate_reduce.h"

namespace nautilus::spec {

class ExprElaborator {
 public:
  ExprElaborator(Symbols& symbols, const Symbols& library, EquationScope& axes,
                 expr::ExprPool& pool, diag::Sink& sink)
      : scope_{symbols, axes, pool, sink, NameScope(symbols, library)} {}
  // Its parts hold references to it.
  ExprElaborator(const ExprElaborator&) = delete;
  ExprElaborator& operator=(const ExprElaborator&) = delete;

  // Makes an axis visible by the name it has in the text.
  void bind_axis(std::string_view name, ir::Expr var) { scope_.names.bind_axis(name, var); }

  Typed elaborate(const expr::Syntax& s);
  // An integer expression of sizes and integer scalars only: dimensions, extents.
  ir::Expr elaborate_size(const expr::Syntax& s);
  // An integer, which the messages call `what`.
  ir::Expr elaborate_index(const expr::Syntax& s, std::string_view what);
  // Whether e may be a size; reported if it may not.
  bool is_size(const expr::Syntax& s, ir::Expr e);

  // Equations taken out of this one, in the order they are needed. Extents may be placeholders
  // still.
  const std::vector<Let>& taken_out() const { return taken_out_.lets(); }
  // Where each tensor read stands in the text.
  const std::unordered_map<ir::Expr, diag::Span>& read_spans() const { return scope_.reads.all(); }

 private:
  Typed dispatch(const expr::Syntax& s);
  bool is_reasonable(ir::Expr e, diag::Span span);
  Typed name(const expr::Syntax& s);
  // A name without a meaning where a number is meant.
  Typed unknown(const expr::Syntax& s);
  Typed undefined(const expr::Syntax& s);
  Typed read(const expr::Syntax& s);
  // An element of a state; outside the steps, the initial element.
  Typed read_state(const Symbol& symbol, ir::Expr read);
  Typed prefix(const expr::Syntax& s);
  Typed infix(const expr::Syntax& s);

  Typed call(const expr::Syntax& s);
  Typed call_builtin(const expr::Syntax& s, expr::Op op);
  Typed select(const expr::Syntax& s);
  Typed cast(const expr::Syntax& s, expr::DType dtype);
  Typed call_function(const expr::Syntax& s, const FunctionSyntax& f);
  // Whether the call has what the function takes, and ends; reported if not.
  bool can_call(const expr::Syntax& s, const FunctionSyntax& f);
  bool bind_axes(const expr::Syntax& s, const FunctionSyntax& f, NameScope::Frame& frame);
  bool bind_arguments(const expr::Syntax& s, const FunctionSyntax& f, NameScope::Frame& frame);

  Typed let(const expr::Syntax& s);
  Typed repeat(const expr::Syntax& s);
  // A table is an equation of its own, so that its reads are checked like others.
  Typed table(const expr::Syntax& s);
  std::vector<Typed> table_elements(const expr::Syntax& s);

  Typed fail() const { return {}; }

  ElaborationScope scope_;
  Operators operators_{scope_};
  TakenOut taken_out_{scope_};
  ReductionElaborator reductions_{scope_, operators_, taken_out_, *this};
  int64_t visits_ = 0;
};

}  // namespace nautilus::spec
