// SPDX-License-Identifier: Apache-2.0
#include "vrtile/conditions.h"

#include "ir/decl.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {

using expr::Expr;
using expr::Poly;
using EK = expr::Op;

Expr conjunction(expr::ExprPool& pool, const std::vector<Expr>& parts) {
  Expr out;
  for (Expr p : parts) out = out ? pool.binary(EK::And, out, p) : p;
  return out;
}

std::optional<Poly> as_nonnegative(Expr c) {
  if (c.args().size() != 2 || c[0].dtype() != ir::DType::I64) return std::nullopt;
  std::optional<Poly> p;
  switch (c.op()) {
    case EK::Lt:
      p = expr::difference(c[1], c[0]);
      return p ? expr::plus(*p, -1) : p;
    case EK::Le:
      return expr::difference(c[1], c[0]);
    case EK::Gt:
      p = expr::difference(c[0], c[1]);
      return p ? expr::plus(*p, -1) : p;
    case EK::Ge:
      return expr::difference(c[0], c[1]);
    default:
      return std::nullopt;
  }
}

bool is_positive(const ir::Program& program, Expr e) {
  switch (e.op()) {
    case EK::FloatConst:
      return e.number() > 0;
    case EK::Mul:
    case EK::Div:
      return is_positive(program, e[0]) && is_positive(program, e[1]);
    case EK::Cast:
    case EK::Sqrt:
    case EK::Rsqrt:
      return expr::is_float(e[0].dtype()) && is_positive(program, e[0]);
    case EK::Var:
      for (const ir::Op& op : program.body) {
        if (const auto* l = op.get<Let>()) {
          if (l->name == e.name() && is_positive(program, l->value)) return true;
        }
        const auto* fact = op.get<ir::Fact>();
        if (!fact) continue;
        for (Expr c : conjuncts(fact->condition)) {
          if (c.op() == EK::Gt && c[0] == e && c[1].op() == EK::FloatConst && c[1].number() >= 0)
            return true;
          if (c.op() == EK::Lt && c[1] == e && c[0].op() == EK::FloatConst && c[0].number() >= 0)
            return true;
        }
      }
      return false;
    default:
      return false;
  }
}

Expr filled_with(const ir::Op& op) {
  const auto* s = op.get<Set>();
  return s && s->value.is_const() ? s->value : Expr();
}

}  // namespace nautilus::vrtile
