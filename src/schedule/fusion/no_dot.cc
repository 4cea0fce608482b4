// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/no_dot.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
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

std::string why_no_dot(const Fusion& fusion) {
  for (const Member& m : fusion.members) {
    if (m.statement != fusion.seed || m.reducer != expr::Reducer::Sum) continue;
    const std::vector<Expr> list = algebra::factors(m.value);
    for (size_t k = 0; k < list.size(); ++k) {
      for (size_t n = 0; n < k; ++n) {
        if (algebra::are_operands(list[n], list[k], m.axes) &&
            expr::depends_on(list[n], fusion.stream) && expr::depends_on(list[k], fusion.stream))
          return why_no_operands(list[n], list[k]);
      }
    }
  }
  return std::string(kNoProduct);
}

}  // namespace nautilus::schedule
