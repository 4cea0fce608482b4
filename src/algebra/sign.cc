// SPDX-License-Identifier: Apache-2.0
#include "algebra/sign.h"

#include <cmath>

#include "expr/walk.h"
#include "ir/decl.h"

namespace nautilus::algebra {

using expr::Expr;
using expr::Op;

namespace {
// Larger expressions are skipped, because they are walked as trees.
constexpr uint32_t kMaxTree = 64;

// Whether numbers keep their sign: f32, tf32 and bf16 have the same exponents.
bool keeps_small(expr::DType to, expr::DType from) {
  const bool is_wide = to == expr::DType::BF16 || to == expr::DType::TF32 ||
                       to == expr::DType::F32 || to == expr::DType::F64;
  return to == from || (is_wide && (from != expr::DType::F64 || to == expr::DType::F64));
}
}  // namespace

Signs::Signs(const ir::Program& program) {
  for (const ir::Op& op : program.body) {
    const auto* fact = op.get<ir::Fact>();
    if (!fact) continue;
    auto add = [&](auto& self, Expr c) -> void {
      if (c.op() == Op::And) {
        self(self, c[0]);
        self(self, c[1]);
        return;
      }
      if (!expr::is_comparison(c.op()) || !is_float(c[0].dtype())) return;
      const bool is_greater = c.op() == Op::Gt || c.op() == Op::Ge;
      const bool is_less = c.op() == Op::Lt || c.op() == Op::Le;
      if (!is_greater && !is_less) return;
      const Expr big = is_greater ? c[0] : c[1];
      const Expr small = is_greater ? c[1] : c[0];
      const bool is_strict = c.op() == Op::Gt || c.op() == Op::Lt;
      if (is_positive(small) || (is_strict && is_nonnegative(small))) positive_.insert(big);
      if (is_nonnegative(small)) nonnegative_.insert(big);
    };
    add(add, fact->condition);
  }
}

bool Signs::is_positive(Expr e) const {
  if (positive_.contains(e)) return true;
  if (e.tree_size() > kMaxTree) return false;
  switch (e.op()) {
    case Op::FloatConst:
      return e.number() > 0 && std::isfinite(e.number());
    case Op::Mul:
    case Op::Div:
      return is_positive(e[0]) && is_positive(e[1]);
    case Op::Add:
      return (is_positive(e[0]) && is_nonnegative(e[1])) ||
             (is_nonnegative(e[0]) && is_positive(e[1]));
    case Op::Sqrt:
    case Op::Rsqrt:
      return is_positive(e[0]);
    case Op::Cast:
      // Small numbers become 0 where the exponent has fewer bits.
      return is_float(e.dtype()) && is_float(e[0].dtype()) &&
             keeps_small(e.dtype(), e[0].dtype()) && is_positive(e[0]);
    case Op::Max:
      return is_positive(e[0]) || is_positive(e[1]);
    case Op::Min:
      return is_positive(e[0]) && is_positive(e[1]);
    case Op::Select:
      return is_positive(e[1]) && is_positive(e[2]);
    default:
      return false;
  }
}

bool Signs::is_nonnegative(Expr e) const {
  if (nonnegative_.contains(e)) return true;
  if (e.tree_size() > kMaxTree) return false;
  if (is_positive(e)) return true;
  switch (e.op()) {
    case Op::FloatConst:
      return e.number() >= 0;
    case Op::Exp:
    case Op::Exp2:
    case Op::Abs:
    case Op::Sqrt:
    case Op::Sigmoid:
      return true;
    case Op::Mul:
      return e[0] == e[1] || (is_nonnegative(e[0]) && is_nonnegative(e[1]));
    case Op::Add:
    case Op::Min:
      return is_nonnegative(e[0]) && is_nonnegative(e[1]);
    case Op::Max:
      return is_nonnegative(e[0]) || is_nonnegative(e[1]);
    case Op::Div:
      return is_nonnegative(e[0]) && is_positive(e[1]);
    case Op::Cast:
      return is_float(e.dtype()) && is_float(e[0].dtype()) && is_nonnegative(e[0]);
    case Op::Select:
      return is_nonnegative(e[1]) && is_nonnegative(e[2]);
    default:
      return false;
  }
}

bool is_scalar(Expr e, const std::unordered_set<Expr>& axes) {
  bool ok = true;
  expr::for_each(e, [&](Expr x) {
    ok &= x.op() != Op::Read && x.op() != Op::Reduce && !(x.op() == Op::Var && axes.contains(x));
  });
  return ok;
}

}  // namespace nautilus::algebra
