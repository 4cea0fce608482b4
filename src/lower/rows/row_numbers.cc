// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_numbers.h"

#include "expr/walk.h"
#include "matile/ops.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

namespace {

bool has_slow_op(Expr e) {
  bool found = false;
  expr::for_each(e, [&](Expr x) {
    found |= (x.op() >= EK::Exp && x.op() <= EK::Cos) || x.op() == EK::Div ||
             (x.op() == EK::Select && x.dtype() == DType::F32);
  });
  return found;
}

}  // namespace

Expr RowNumbers::hoisted(Expr e) {
  if (const auto known = without_numbers_.find(e); known != without_numbers_.end())
    return known->second;
  const Expr out = hoist(e);
  without_numbers_.emplace(e, out);
  return out;
}

Expr RowNumbers::hoist(Expr e) {
  if (is_number(e) && has_slow_op(e)) {
    auto it = hoisted_.find(e);
    if (it == hoisted_.end()) {
      const ir::Name name = scope_.add_tile("number", DType::F32, false);
      row_.push_back(ir::make(matile::Set{name, {}, e}));
      it = hoisted_.emplace(e, name).first;
    }
    return scope_.pool.read(it->second, DType::F32, {});
  }
  std::vector<Expr> args(e.args().begin(), e.args().end());
  bool is_changed = false;
  for (Expr& a : args) {
    const Expr b = hoisted(a);
    is_changed |= b != a;
    a = b;
  }
  return is_changed ? scope_.pool.with_args(e, args) : e;
}

// Of tiles without columns, sizes and scalars: nothing that is read under a condition.
bool RowNumbers::is_number(Expr e) const {
  if (e.dtype() != DType::F32) return false;
  bool ok = true;
  expr::for_each(e, [&](Expr x) {
    ok &= x.op() != EK::Read ||
          (x.args().empty() && scope_.is_tile(x.name()) && !scope_.moving.contains(x.name()));
    ok &= x.op() != EK::Var || !expr::depends_on(scope_.at, x);
    for (const ir::Axis& a : scope_.group.outer) ok &= x != scope_.pool.index(a.name);
  });
  return ok;
}

}  // namespace nautilus::lower
