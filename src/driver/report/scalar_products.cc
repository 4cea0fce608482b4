// SPDX-License-Identifier: Apache-2.0
#include "driver/report/scalar_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "algebra/matrix_factors.h"
#include "expr/print.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "schedule/fusion/fusion_check.h"
#include "schedule/fusion/statement.h"

namespace nautilus::driver {
namespace {

using EK = expr::Op;
using expr::Expr;

constexpr size_t kShownText = 60;  // of an operand, in a message

std::vector<Expr> indices(const ir::Axes& axes, expr::ExprPool& pool) {
  std::vector<Expr> out;
  for (const ir::Axis& a : axes) out.push_back(pool.index(a.name));
  return out;
}

using Operands = algebra::MatrixFactors;

// Two factors that make the statement a product of matrices; null for other statements.
Operands operands_of(const schedule::Statement& s, expr::ExprPool& pool) {
  if (!s.is_reduction() || s.reducer != expr::Reducer::Sum) return {};
  return algebra::matrix_factors(s.value, indices(s.axes, pool), indices(s.reduce, pool), pool);
}

// An element that is indexed by another tensor.
bool is_gathered(Expr operand) {
  const Expr e = algebra::element_of(operand);
  return e && std::any_of(e.args().begin(), e.args().end(),
                          [](Expr i) { return !expr::tensors_read(i).empty(); });
}

std::string cure_of(const Operands& o, ir::Rounding contract) {
  for (Expr operand : {o.a, o.b}) {
    if (is_gathered(operand))
      return fmt::format(
          "the element `{}` comes from a place that data say: an equation of its "
          "own that copies it makes the operand a plain tensor",
          expr::to_string(algebra::element_of(operand)));
  }
  for (Expr operand : {o.a, o.b}) {
    if (algebra::element_of(operand)) continue;
    const std::string text = expr::to_string(operand);
    return fmt::format(
        "{} is computed: an equation of its own with 16 bits, `U[...] = ... -> bf16`, makes it one "
        "that the matrix unit can take, if 8 bits of precision are enough",
        text.size() <= kShownText ? fmt::format("the operand `{}`", text) : "an operand");
  }
  const Expr element = algebra::element_of(o.b);
  if (element.dtype() != expr::DType::F32) return "";
  return fmt::format(
      "if 8 bits of precision are enough for `{}`, `bf16(...)` around it (or `f16(...)`: 11 bits, "
      "a smaller range) lets the matrix unit compute the product{}",
      element.name().str(),
      ir::operand_roundoff(contract) > 0 ? "" : "; `numerics bf16` is that for all f32 products");
}

// The scheduler's reason, after the colon.
std::string reason_of(const std::string& statement, const std::vector<std::string>& derivation) {
  for (std::string_view line : derivation) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const bool is_own = line.starts_with(statement + " starts no kernel of tiles: ") ||
                        line.starts_with(statement + " stays outside: ");
    const std::string_view why = line.substr(std::min(line.find(": "), line.size()));
    // Rows in blocks, or a condition around the product: the scheduler saw none.
    if (is_own && !why.ends_with(schedule::kNoProduct)) return std::string(why.substr(2));
  }
  return "";
}

}  // namespace

std::vector<ScalarProduct> scalar_products(const Kernels& kernels, expr::ExprPool& pool) {
  std::vector<ScalarProduct> out;
  if (!kernels.origin) return out;
  const ir::Rounding contract = ir::numerics_of(kernels.program).rounding;
  const auto list = schedule::statements_of(kernels.origin->statements, pool);
  for (const schedule::Statement& s : list.statements) {
    const std::string name(s.target.str());
    if (kernels.origin->in_tiles.contains(name)) continue;
    const Operands operands = operands_of(s, pool);
    if (!operands.a) continue;
    out.push_back({name, s.axes, s.reduce, reason_of(name, kernels.origin->derivation),
                   cure_of(operands, contract)});
  }
  return out;
}

}  // namespace nautilus::driver
