// SPDX-License-Identifier: Apache-2.0
#include "vrtile/names.h"

#include <fmt/format.h>

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::vrtile {

void Names::add(ir::Expr e) {
  expr::for_each(e, [&](ir::Expr x) {
    if (x.op() == expr::Op::Var || x.op() == expr::Op::Read) taken_.emplace(x.name().str());
  });
}

void Names::add(const ir::Block& block) {
  ir::for_each_op(block, [&](const ir::Op& op) {
    for (const ir::Field& f : op.info().fields) {
      if (f.kind == ir::FieldKind::Name)
        taken_.emplace(ir::field_value<ir::Name>(op.data(), f).str());
      if (f.kind != ir::FieldKind::AxisList) continue;
      for (const ir::Axis& a : ir::field_value<ir::Axes>(op.data(), f))
        taken_.emplace(a.name.str());
    }
    for (const ir::Field& f : op.info().fields) {
      if (f.kind == ir::FieldKind::Expr) {
        if (const ir::Expr e = ir::field_value<ir::Expr>(op.data(), f)) add(e);
      } else if (f.kind == ir::FieldKind::ExprList) {
        for (ir::Expr e : ir::field_value<ir::Exprs>(op.data(), f)) add(e);
      }
    }
  });
}

ir::Name Names::fresh(std::string_view base) {
  std::string name(base);
  for (int k = 1; !taken_.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
  return pool_.name(name);
}

ir::Name Names::copy(ir::Name name) {
  std::string_view base = name.str();
  const size_t end = base.find_last_not_of("0123456789");
  if (end != std::string_view::npos && end > 0 && end + 1 < base.size() && base[end] == '_')
    base = base.substr(0, end);
  return fresh(base);
}

}  // namespace nautilus::vrtile
