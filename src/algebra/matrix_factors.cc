// SPDX-License-Identifier: Apache-2.0
#include "algebra/matrix_factors.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/walk.h"

namespace nautilus::algebra {
namespace {

using expr::Expr;
using EK = expr::Op;

// The summed value, without the condition of its mask.
Expr without_mask(Expr value) {
  while (value.op() == EK::Select || value.op() == EK::Cast) {
    if (value.op() == EK::Cast) {
      value = value[0];
    } else if (value[2].is_const() && expr::is_float(value.dtype()) && value[2].number() == 0) {
      value = value[1];
    } else {
      break;
    }
  }
  return value;
}

// Rows that share an operand in blocks do not vary along the block.
Expr without_blocks(Expr e, std::span<const Expr> axes, expr::ExprPool& pool) {
  expr::Substitution blocks;
  expr::for_each(e, [&](Expr x) {
    const bool is_block =
        x.op() == EK::FloorDiv && std::find(axes.begin(), axes.end(), x[0]) != axes.end();
    if (is_block) blocks.emplace(x, pool.integer(0));
  });
  return blocks.empty() ? e : expr::substitute(pool, e, blocks);
}

}  // namespace

MatrixFactors matrix_factors(Expr value, std::span<const Expr> axes, std::span<const Expr> summed,
                             expr::ExprPool& pool) {
  const std::vector<Expr> list = factors(without_mask(value));
  const auto may_be_operand = [&](Expr e) {
    return !expr::tensors_read(e).empty() &&
           std::any_of(summed.begin(), summed.end(),
                       [&](Expr axis) { return expr::depends_on(e, axis); });
  };
  for (size_t k = 0; k < list.size(); ++k) {
    for (size_t n = 0; n < k; ++n) {
      if (may_be_operand(list[k]) && may_be_operand(list[n]) &&
          are_operands(without_blocks(list[k], axes, pool), without_blocks(list[n], axes, pool),
                       axes))
        return {list[n], list[k]};
    }
  }
  return {};
}

}  // namespace nautilus::algebra
