// SPDX-License-Identifier: Apache-2.0
#include "matile/rename_names.h"

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::matile {
namespace {

using ir::Field;
using ir::FieldKind;
using ir::Op;

void rename_name(ir::Name& name, const Renaming& renaming) {
  if (!name) return;
  if (const auto it = renaming.find(name.str()); it != renaming.end()) name = it->second;
}

}  // namespace

Names defined_names(const ir::Block& block) {
  Names out;
  const auto add = [&](ir::Name name) {
    if (name) out.emplace(name.str());
  };
  ir::for_each_op(block, [&](const Op& op) {
    for (const Field& f : op.info().fields) {
      if (f.kind == FieldKind::Name) add(ir::field_value<ir::Name>(op.data(), f));
      if (f.kind == FieldKind::NameList) {
        for (ir::Name n : ir::field_value<ir::Names>(op.data(), f)) add(n);
      }
      if (f.kind == FieldKind::AxisList) {
        for (const ir::Axis& a : ir::field_value<ir::Axes>(op.data(), f)) add(a.name);
      }
    }
  });
  return out;
}

Op rename_names(const Op& op, const Renaming& renaming, expr::ExprPool& pool) {
  const Op mapped = ir::map_exprs(op, [&](ir::Expr e) {
    return expr::rebuild(pool, e, [&](ir::Expr x) {
      if (x.op() != expr::Op::Read && x.op() != expr::Op::Var) return x;
      const auto it = renaming.find(x.name().str());
      if (it == renaming.end()) return x;
      return x.op() == expr::Op::Var ? pool.var(it->second, x.dtype())
                                     : pool.read(it->second, x.dtype(), x.args());
    });
  });
  auto data = ir::copy_data(mapped);
  for (const Field& f : mapped.info().fields) {
    if (f.kind == FieldKind::Name) {
      rename_name(ir::field_value<ir::Name>(data.get(), f), renaming);
    } else if (f.kind == FieldKind::NameList) {
      for (ir::Name& n : ir::field_value<ir::Names>(data.get(), f)) rename_name(n, renaming);
    } else if (f.kind == FieldKind::AxisList) {
      for (ir::Axis& a : ir::field_value<ir::Axes>(data.get(), f)) rename_name(a.name, renaming);
    } else if (f.kind == FieldKind::Body) {
      for (Op& inner : ir::field_value<ir::Block>(data.get(), f))
        inner = rename_names(inner, renaming, pool);
    }
  }
  return Op(mapped.info(), mapped.span(), std::move(data));
}

}  // namespace nautilus::matile
