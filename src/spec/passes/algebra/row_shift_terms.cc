// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/row_shift_terms.h"

#include <algorithm>

namespace nautilus::spec {

using expr::DType;
using expr::Expr;
using expr::Op;

std::optional<ShiftFactors> without(ShiftFactors all, const ShiftFactors& part) {
  for (const ShiftFactor& f : part) {
    const auto it = std::find(all.begin(), all.end(), f);
    if (it == all.end()) return std::nullopt;
    all.erase(it);
  }
  return all;
}

ShiftTerms negated(ShiftTerms terms) {
  for (ShiftTerm& t : terms) t.is_negative = !t.is_negative;
  return terms;
}

ShiftTerms times(const ShiftTerms& a, const ShiftTerms& b, expr::ExprPool& pool) {
  ShiftTerms out;
  if (a.size() * b.size() > kMaxShiftTerms) return out;
  for (const ShiftTerm& x : a) {
    for (const ShiftTerm& y : b) {
      ShiftTerm t = x;
      t.is_negative ^= y.is_negative;
      t.row.insert(t.row.end(), y.row.begin(), y.row.end());
      t.along.insert(t.along.end(), y.along.begin(), y.along.end());
      t.varying = !x.varying   ? y.varying
                  : !y.varying ? x.varying
                               : pool.binary(Op::Mul, x.varying, y.varying);
      out.push_back(std::move(t));
    }
  }
  return out;
}

ShiftTerms joined(const ShiftTerms& terms, expr::ExprPool& pool) {
  ShiftTerms out;
  for (const ShiftTerm& t : terms) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const ShiftTerm& o) {
      return o.varying && t.varying && o.row == t.row && o.along == t.along;
    });
    if (same == out.end()) {
      out.push_back(t);
      continue;
    }
    same->varying = plus(pool, same->varying, t.varying, same->is_negative != t.is_negative);
  }
  return out;
}

Expr plus(expr::ExprPool& pool, Expr sum, Expr e, bool is_negative) {
  if (!sum) return is_negative ? pool.unary(Op::Neg, e) : e;
  return pool.binary(is_negative ? Op::Sub : Op::Add, sum, e);
}

Expr product(expr::ExprPool& pool, Expr first, const ShiftFactors& list) {
  for (const bool is_divisor : {false, true}) {
    for (const ShiftFactor& f : list) {
      if (f.is_divisor != is_divisor) continue;
      if (!first && is_divisor) first = pool.constant(1, DType::F32);
      first = first ? pool.binary(is_divisor ? Op::Div : Op::Mul, first, f.value) : f.value;
    }
  }
  return first ? first : pool.constant(1, DType::F32);
}

}  // namespace nautilus::spec
