// SPDX-License-Identifier: Apache-2.0
// Generic traversals of ops, from their field lists.
#pragma once

#include "ir/op.h"

namespace nautilus::ir {

namespace detail {
using ExprVisitor = void (*)(void* context, Expr e);
using ExprMapper = Expr (*)(void* context, Expr e);
void visit_exprs(const Op& op, void* context, ExprVisitor visit);
Op map_exprs(const Op& op, void* context, ExprMapper map);
}  // namespace detail

// Calls f(Expr) for every expression in the op's own fields and in its blocks.
template <class F>
void for_each_expr(const Op& op, F&& f) {
  detail::visit_exprs(op, &f, [](void* context, Expr e) {
    (*static_cast<std::remove_reference_t<F>*>(context))(e);
  });
}

// The op with every expression replaced by f(expression), blocks included. Unchanged ops are
// shared.
template <class F>
Op map_exprs(const Op& op, F&& f) {
  return detail::map_exprs(op, &f, [](void* context, Expr e) {
    return (*static_cast<std::remove_reference_t<F>*>(context))(e);
  });
}

// Calls f(const Op&) for the ops of a block and of all blocks inside, outer ops first.
template <class F>
void for_each_op(const Block& block, F&& f) {
  for (const Op& op : block) {
    f(op);
    for (const Field& field : op.info().fields) {
      if (field.kind == FieldKind::Body) for_each_op(field_value<Block>(op.data(), field), f);
    }
  }
}

}  // namespace nautilus::ir
