// SPDX-License-Identifier: Apache-2.0
#include "vrtile/coefficient.h"

#include <algorithm>
#include <cmath>

namespace nautilus::vrtile {

using expr::Expr;
using EK = expr::Op;

bool Coefficient::Less::operator()(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](Expr x, Expr y) { return expr::compare(x, y) < 0; });
}

Coefficient Coefficient::of(std::vector<Expr> factors, double value) {
  std::sort(factors.begin(), factors.end(), [](Expr x, Expr y) { return expr::compare(x, y) < 0; });
  Coefficient out;
  if (value != 0) out.terms_.emplace(std::move(factors), value);
  return out;
}

Coefficient Coefficient::times(double x) const {
  Coefficient out = *this;
  for (auto& [factors, value] : out.terms_) value *= x;
  return out;
}

namespace {

// The numbers and variables of a product.
bool flatten(Expr e, std::vector<Expr>& factors, double& number) {
  if (e.op() == EK::FloatConst) {
    number *= e.number();
    return std::isfinite(number);
  }
  if (e.op() == EK::Var) {
    factors.push_back(e);
    return true;
  }
  if (e.op() == EK::Neg) {
    number = -number;
    return flatten(e[0], factors, number);
  }
  if (e.op() == EK::Div && e[1].op() == EK::FloatConst && e[1].number() != 0) {
    number /= e[1].number();
    return flatten(e[0], factors, number);
  }
  return e.op() == EK::Mul && flatten(e[0], factors, number) && flatten(e[1], factors, number);
}

}  // namespace

std::optional<Coefficient> Coefficient::times(Expr scalar) const {
  std::vector<Expr> factors;
  double number = 1;
  if (!flatten(scalar, factors, number)) return std::nullopt;
  Coefficient out;
  for (const auto& [mine, value] : terms_) {
    std::vector<Expr> all = mine;
    all.insert(all.end(), factors.begin(), factors.end());
    out = out + of(std::move(all), value * number);
  }
  return out;
}

Coefficient operator+(const Coefficient& a, const Coefficient& b) {
  Coefficient out = a;
  for (const auto& [factors, value] : b.terms_) {
    double& mine = out.terms_[factors];
    const double scale = std::max(std::fabs(mine), std::fabs(value));
    mine += value;
    // Constants such as log2(e) are rounded in the program's dtypes.
    if (std::fabs(mine) <= 1e-6 * scale) out.terms_.erase(factors);
  }
  return out;
}

Expr Coefficient::expression(expr::ExprPool& pool, ir::DType dtype) const {
  if (terms_.size() != 1) return {};
  const auto& [factors, value] = *terms_.begin();
  Expr out;
  for (Expr f : factors) out = out ? pool.binary(EK::Mul, out, f) : f;
  if (!out) return pool.floating(value, dtype);
  return value == 1 ? out : pool.binary(EK::Mul, out, pool.floating(value, dtype));
}

}  // namespace nautilus::vrtile
