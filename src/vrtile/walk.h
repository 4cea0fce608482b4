// SPDX-License-Identifier: Apache-2.0
// The tiles that an op uses, and renaming of ops.
#pragma once

#include <unordered_map>

#include "expr/walk.h"
#include "ir/op.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {

// Calls f(Expr) for every expression of the op's own fields, not of its block.
template <class F>
void for_each_own_expr(const ir::Op& op, F&& f) {
  for (const ir::Field& field : op.info().fields) {
    if (field.kind == ir::FieldKind::Expr) {
      if (const ir::Expr e = ir::field_value<ir::Expr>(op.data(), field)) f(e);
    } else if (field.kind == ir::FieldKind::ExprList) {
      for (ir::Expr e : ir::field_value<ir::Exprs>(op.data(), field)) f(e);
    }
  }
}

// Calls f(Name) for every name that the op's own fields use: tiles, tensors, scalars and axes. The
// init and the next of a carry are uses.
template <class F>
void for_each_use(const ir::Op& op, F&& f) {
  for_each_own_expr(op, [&](ir::Expr e) {
    expr::for_each(e, [&](ir::Expr x) {
      if (x.op() == expr::Op::Read || x.op() == expr::Op::Var) f(x.name());
    });
  });
  if (const auto* p = op.get<Par>()) {
    for (const ir::Axis& a : p->axes) {
      expr::for_each(a.extent, [&](ir::Expr x) {
        if (x.op() == expr::Op::Var) f(x.name());
      });
    }
  }
  if (const auto* d = op.get<Dot>()) {
    f(d->a);
    f(d->b);
    if (d->acc) f(d->acc);
  }
  if (const auto* c = op.get<Carry>()) {
    f(c->init);
    f(c->next);
  }
}

using Renaming = std::unordered_map<ir::Name, ir::Name>;

// The op, its block included, with tiles renamed where they are defined and where they are used.
ir::Op rename(const ir::Op& op, const Renaming& names, expr::ExprPool& pool);
ir::Expr rename(ir::Expr e, const Renaming& names, expr::ExprPool& pool);
// The op with every expression of its own and of its block put through the substitution.
ir::Op substitute(const ir::Op& op, const expr::Substitution& map, expr::ExprPool& pool);

// The op with another block.
ir::Op with_body(const ir::Op& op, ir::Block body);
// The block of a par or for; null for other ops.
const ir::Block* body_of(const ir::Op& op);

// Rebuilds the program: f(Block) -> Block gets every block, inner ones first.
template <class F>
ir::Block rebuild_blocks(const ir::Block& block, F&& f) {
  ir::Block out;
  for (const ir::Op& op : block) {
    const ir::Block* body = body_of(op);
    out.push_back(body ? with_body(op, rebuild_blocks(*body, f)) : op);
  }
  return f(out);
}

}  // namespace nautilus::vrtile
