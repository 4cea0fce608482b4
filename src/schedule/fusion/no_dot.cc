// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/no_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "algebra/contraction.h"
#include "algebra/matrix_factors.h"
#include "expr/walk.h"
#include "schedule/fusion/fusion_check.h"

namespace nautilus::schedule {
namespace {

// Of factors that make a product of matrices.
std::string why_no_operands(Expr a, Expr b) {
  if (!algebra::is_half_element(a) && !algebra::is_half_element(b))
    return "it is a matrix product, but no operand has 16 bits: a cast of one, `bf16(...)`, "
           "would let both be rounded";
  for (Expr operand : {a, b}) {
    const Expr e = algebra::element_of(operand);
    if (e && std::any_of(e.args().begin(), e.args().end(),
                         [](Expr i) { return !expr::tensors_read(i).empty(); }))
      return fmt::format(
          "it is a matrix product, but data say where `{}` lies: a tile brings neighbours",
          e.name().str());
  }
  return "it is a matrix product, but its factors are no two operands of one tile: one must lie "
         "in memory with 16 bits, and no third have its axis";
}

}  // namespace

std::string why_no_dot(const Fusion& fusion, expr::ExprPool& pool) {
  for (const Member& m : fusion.members) {
    if (m.statement != fusion.seed || m.reducer != expr::Reducer::Sum) continue;
    const auto [a, b] =
        algebra::matrix_factors(m.value, m.axes, std::span(&fusion.stream, 1), pool);
    if (a) return why_no_operands(a, b);
  }
  return std::string(kNoProduct);
}

}  // namespace nautilus::schedule
