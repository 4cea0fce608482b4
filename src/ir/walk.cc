// SPDX-License-Identifier: Apache-2.0
#include "ir/walk.h"

namespace nautilus::ir::detail {

void visit_exprs(const Op& op, void* context, ExprVisitor visit) {
  for (const Field& f : op.info().fields) {
    switch (f.kind) {
      case FieldKind::Expr:
        if (const Expr e = field_value<Expr>(op.data(), f)) visit(context, e);
        break;
      case FieldKind::ExprList:
        for (Expr e : field_value<Exprs>(op.data(), f)) visit(context, e);
        break;
      case FieldKind::Type:
        for (Expr e : field_value<TensorType>(op.data(), f).dims) visit(context, e);
        break;
      case FieldKind::AxisList:
        for (const Axis& a : field_value<Axes>(op.data(), f)) visit(context, a.extent);
        break;
      case FieldKind::Body:
        for (const Op& inner : field_value<Block>(op.data(), f)) visit_exprs(inner, context, visit);
        break;
      case FieldKind::Name:
      case FieldKind::NameList:
      case FieldKind::Int:
      case FieldKind::Number:
      case FieldKind::DType:
      case FieldKind::Enum:
      case FieldKind::Text:
        break;
    }
  }
}

Op map_exprs(const Op& op, void* context, ExprMapper map) {
  auto data = copy_data(op);
  for (const Field& f : op.info().fields) {
    switch (f.kind) {
      case FieldKind::Expr:
        if (Expr& e = field_value<Expr>(data.get(), f)) e = map(context, e);
        break;
      case FieldKind::ExprList:
        for (Expr& e : field_value<Exprs>(data.get(), f)) e = map(context, e);
        break;
      case FieldKind::Type:
        for (Expr& e : field_value<TensorType>(data.get(), f).dims) e = map(context, e);
        break;
      case FieldKind::AxisList:
        for (Axis& a : field_value<Axes>(data.get(), f)) a.extent = map(context, a.extent);
        break;
      case FieldKind::Body:
        for (Op& inner : field_value<Block>(data.get(), f)) inner = map_exprs(inner, context, map);
        break;
      case FieldKind::Name:
      case FieldKind::NameList:
      case FieldKind::Int:
      case FieldKind::Number:
      case FieldKind::DType:
      case FieldKind::Enum:
      case FieldKind::Text:
        break;
    }
  }
  Op mapped(op.info(), op.span(), std::move(data));
  return mapped == op ? op : mapped;
}

}  // namespace nautilus::ir::detail
