// SPDX-License-Identifier: Apache-2.0
#include "spec/language/promote.h"

#include <algorithm>

namespace nautilus::spec {

using expr::DType;
using expr::Expr;
using expr::is_float;
using expr::is_int;

namespace {

// A literal in another dtype, if that loses nothing it says.
std::optional<Expr> literal_as(expr::ExprPool& pool, Expr e, DType dtype) {
  if (dtype == DType::Bool || e.dtype() == DType::Bool) return std::nullopt;
  if (is_int(dtype) && is_float(e.dtype())) return std::nullopt;
  if (is_int(dtype) && e.op() == expr::Op::IntConst &&
      expr::wrap_to(dtype, e.integer()) != e.integer()) {
    return std::nullopt;
  }
  return pool.cast(dtype, e);
}

}  // namespace

bool promote(expr::ExprPool& pool, Typed& x, Typed& y) {
  if (x.hold == Hold::Literal && y.hold != Hold::Literal) return promote(pool, y, x);
  const DType dx = x.e.dtype();
  const DType dy = y.e.dtype();
  const Hold hold = std::min(x.hold, y.hold);
  auto finish = [&](DType dtype) {
    x = {pool.cast(dtype, x.e), hold};
    y = {pool.cast(dtype, y.e), hold};
    return true;
  };
  if (dx == dy) return finish(dx);
  if (dx == DType::Bool || dy == DType::Bool) return false;
  if (y.hold == Hold::Literal) {
    if (x.hold != Hold::Firm && is_float(dy)) return finish(DType::F32);  // `0.5 * i`
    const auto converted = literal_as(pool, y.e, dx);
    if (!converted) return false;
    y.e = *converted;
    return finish(dx);
  }
  if (is_float(dx) && is_float(dy)) return finish(DType::F64);
  if (is_int(dx) && is_int(dy)) return finish(DType::I64);
  if (x.hold == Hold::Index && is_float(dy)) return finish(dy);
  if (y.hold == Hold::Index && is_float(dx)) return finish(dx);
  return false;
}

Typed as_float(expr::ExprPool& pool, Typed x) {
  if (is_float(x.e.dtype())) return x;
  if (x.hold == Hold::Firm || x.e.dtype() == DType::Bool) return {};
  return {pool.cast(DType::F32, x.e), x.hold == Hold::Literal ? Hold::Literal : Hold::Firm};
}

Expr widen(expr::ExprPool& pool, Expr e) { return pool.cast(expr::compute_dtype(e.dtype()), e); }

bool is_too_large(DType dtype, Expr e) {
  return is_int(dtype) && e.op() == expr::Op::IntConst &&
         expr::wrap_to(dtype, e.integer()) != e.integer();
}

bool can_become(DType to, const Typed& value) {
  const bool is_number = value.hold != Hold::Firm && value.e.dtype() != DType::Bool;
  return can_store(to, value.e.dtype()) || (is_number && is_float(to));
}

bool can_store(DType to, DType from) {
  if (to == from) return true;
  return (is_float(to) && is_float(from)) || (is_int(to) && is_int(from));
}

}  // namespace nautilus::spec
