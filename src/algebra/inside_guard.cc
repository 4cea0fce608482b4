// SPDX-License-Identifier: Apache-2.0
#include "algebra/inside_guard.h"

#include "algebra/contraction.h"
#include "expr/bounds/affine.h"

namespace nautilus::algebra {

using expr::Expr;
using InsideOp = expr::Op;

bool is_inside_test(Expr comparison, std::span<const Expr> indices, std::span<const Expr> dims) {
  const InsideOp op = comparison.op();
  const bool is_less = op == InsideOp::Lt || op == InsideOp::Le;
  const bool is_greater = op == InsideOp::Gt || op == InsideOp::Ge;
  if ((!is_less && !is_greater) || comparison[0].dtype() != expr::DType::I64) return false;
  const auto apart = is_less ? expr::difference(comparison[1], comparison[0])
                             : expr::difference(comparison[0], comparison[1]);
  const bool is_strict = op == InsideOp::Lt || op == InsideOp::Gt;
  // What must not be negative.
  const auto room = apart ? expr::plus(*apart, is_strict ? -1 : 0) : std::nullopt;
  if (!room) return false;
  for (size_t k = 0; k < indices.size(); ++k) {
    const auto from_begin = expr::Poly::of(indices[k]);
    const auto to_end = expr::difference(dims[k], indices[k]);
    const auto to_last = to_end ? expr::plus(*to_end, -1) : std::nullopt;
    if ((from_begin && *room == *from_begin) || (to_last && *room == *to_last)) return true;
  }
  return false;
}

GuardedElement guarded_element(Expr factor) {
  if (const Expr plain = element_of(factor)) return {plain, {}};
  const Expr select = factor.op() == InsideOp::Cast ? factor[0] : factor;
  if (select.op() != InsideOp::Select) return {};
  const bool is_zero =
      select[2].op() == InsideOp::FloatConst ? select[2].number() == 0 : select[2].is_int(0);
  if (!is_zero) return {};
  const Expr read = element_of(select[1]);
  return read ? GuardedElement{read, select[0]} : GuardedElement();
}

bool keeps_inside(const GuardedElement& element, std::span<const Expr> dims) {
  const auto holds = [&](auto& self, Expr c) -> bool {
    if (c.op() == InsideOp::And) return self(self, c[0]) && self(self, c[1]);
    return is_inside_test(c, element.read.args(), dims);
  };
  return !element.condition || holds(holds, element.condition);
}

}  // namespace nautilus::algebra
