// SPDX-License-Identifier: Apache-2.0
#include "matile/monotone.h"

#include <algorithm>

#include "expr/walk.h"
#include "matile/ops.h"

namespace nautilus::matile {

using expr::Expr;
using EK = expr::Op;

namespace {

bool reads(Expr e, ir::Name tile) {
  const auto read = expr::tensors_read(e);
  return std::find(read.begin(), read.end(), tile) != read.end();
}

}  // namespace

PositiveScalars::PositiveScalars(const ir::Program& program) : signs_(program) {
  for (const ir::Op& op : program.body) {
    if (const auto* let = op.get<Let>(); let && contains(let->value))
      lets_.emplace(let->name.str());
  }
}

bool PositiveScalars::contains(Expr e) const {
  if (signs_.is_positive(e) || (e.op() == EK::Var && lets_.contains(e.name().str()))) return true;
  return (e.op() == EK::Mul || e.op() == EK::Div || e.op() == EK::Add) && contains(e[0]) &&
         contains(e[1]);
}

std::optional<int> direction(Expr e, ir::Name tile, const PositiveScalars& positive) {
  if (!reads(e, tile)) return 0;
  if (e.op() == EK::Read) return 1;
  const auto sub = [&](size_t k) { return direction(e[k], tile, positive); };
  switch (e.op()) {
    case EK::Add:
    case EK::Max:
    case EK::Min:
    case EK::Sub: {
      const auto x = sub(0);
      auto y = sub(1);
      if (!x || !y) return std::nullopt;
      if (e.op() == EK::Sub) y = -*y;
      if (*x != 0 && *y != 0 && *x != *y) return std::nullopt;
      return *x != 0 ? x : y;
    }
    case EK::Neg: {
      const auto x = sub(0);
      return x ? std::optional(-*x) : std::nullopt;
    }
    case EK::Mul:
      for (size_t k = 0; k < 2; ++k) {
        if (positive.contains(e[1 - k])) return sub(k);
      }
      return std::nullopt;
    case EK::Exp:
    case EK::Exp2:
      return sub(0);
    default:
      return std::nullopt;
  }
}

bool holds_beyond(Expr c, ir::Name tile, int sign, const PositiveScalars& positive) {
  if (!reads(c, tile)) return true;
  switch (c.op()) {
    case EK::Not:
      return holds_beyond(c[0], tile, -sign, positive);
    case EK::And:
    case EK::Or:
      return holds_beyond(c[0], tile, sign, positive) && holds_beyond(c[1], tile, sign, positive);
    case EK::Gt:
    case EK::Ge:
    case EK::Lt:
    case EK::Le: {
      const auto left = direction(c[0], tile, positive);
      const auto right = direction(c[1], tile, positive);
      if (!left || !right) return false;
      const int wanted = c.op() == EK::Gt || c.op() == EK::Ge ? sign : -sign;
      return (*left == 0 || *left == wanted) && (*right == 0 || *right == -wanted);
    }
    default:
      return false;
  }
}

bool asks_together(Expr c, ir::Name a, ir::Name b) {
  if (c.op() == EK::Or) return asks_together(c[0], a, b) || asks_together(c[1], a, b);
  return reads(c, a) && reads(c, b);
}

}  // namespace nautilus::matile
