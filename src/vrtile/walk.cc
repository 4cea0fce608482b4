// SPDX-License-Identifier: Apache-2.0
#include "vrtile/walk.h"

#include "ir/walk.h"

namespace nautilus::vrtile {

ir::Expr rename(ir::Expr e, const Renaming& names, expr::ExprPool& pool) {
  return expr::rebuild(pool, e, [&](ir::Expr x) {
    if (x.op() != expr::Op::Read) return x;
    const auto it = names.find(x.name());
    return it == names.end() ? x : pool.read(it->second, x.dtype(), x.args());
  });
}

ir::Op rename(const ir::Op& op, const Renaming& names, expr::ExprPool& pool) {
  const ir::Op mapped = ir::map_exprs(op, [&](ir::Expr e) { return rename(e, names, pool); });
  auto data = ir::copy_data(mapped);
  for (const ir::Field& f : op.info().fields) {
    if (f.kind == ir::FieldKind::Name) {
      ir::Name& name = ir::field_value<ir::Name>(data.get(), f);
      const auto it = names.find(name);
      if (it != names.end()) name = it->second;
    } else if (f.kind == ir::FieldKind::Body) {
      for (ir::Op& inner : ir::field_value<ir::Block>(data.get(), f))
        inner = rename(inner, names, pool);
    }
  }
  return ir::Op(op.info(), op.span(), std::move(data));
}

ir::Op substitute(const ir::Op& op, const expr::Substitution& map, expr::ExprPool& pool) {
  return ir::map_exprs(op, [&](ir::Expr e) { return expr::substitute(pool, e, map); });
}

const ir::Block* body_of(const ir::Op& op) {
  if (const auto* p = op.get<Par>()) return &p->body;
  if (const auto* f = op.get<For>()) return &f->body;
  return nullptr;
}

ir::Op with_body(const ir::Op& op, ir::Block body) {
  if (const auto* p = op.get<Par>()) {
    Par par = *p;
    par.body = std::move(body);
    return ir::make(std::move(par), op.span());
  }
  For loop = op.as<For>();
  loop.body = std::move(body);
  return ir::make(std::move(loop), op.span());
}

}  // namespace nautilus::vrtile
