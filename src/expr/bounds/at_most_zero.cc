// SPDX-License-Identifier: Apache-2.0
#include "expr/bounds/at_most_zero.h"

namespace nautilus::expr {

std::optional<Poly> at_most_zero(Expr condition) {
  const Op op = condition.op();
  if (op != Op::Lt && op != Op::Le && op != Op::Gt && op != Op::Ge) return std::nullopt;
  if (condition[0].dtype() != DType::I64) return std::nullopt;
  const bool is_less = op == Op::Lt || op == Op::Le;
  const auto low = Poly::of(condition[is_less ? 0 : 1]);
  const auto high = Poly::of(condition[is_less ? 1 : 0]);
  auto difference = low && high ? add(*low, *high, -1) : std::nullopt;
  if (difference && (op == Op::Lt || op == Op::Gt) && !difference->add({}, 1)) return std::nullopt;
  return difference;
}

}  // namespace nautilus::expr
