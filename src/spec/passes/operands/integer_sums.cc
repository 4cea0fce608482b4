// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/integer_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "algebra/contraction.h"
#include "ir/operand_width.h"
#include "ir/target_of.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;

// The element of 8-bit integers that the factor is in f32; null if it is something else.
Expr integer_element(Expr factor) {
  Expr e = factor;
  while (e.op() == Op::Cast) {
    if (e.dtype() != DType::F32 && e.dtype() != DType::I32) return {};
    e = e[0];
  }
  const bool is_element = e.op() == Op::Read && expr::is_int(e.dtype()) &&
                          expr::is_operand(e.dtype()) && factor.op() == Op::Cast;
  return is_element ? e : Expr();
}

// Every index is an axis of its own.
bool is_plain(Expr element) {
  std::unordered_set<Expr> seen;
  return std::ranges::all_of(element.args(), [&](Expr index) {
    return index.op() == Op::Var && seen.insert(index).second;
  });
}

int64_t magnitude(DType dtype) {
  return std::max(std::abs(expr::int_min(dtype)), expr::int_max(dtype));
}

class Rewriter {
 public:
  Rewriter(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), names_(program, pool), matrix_(ir::target_of(program).matrix) {
    for (const ir::Op& op : program.body) {
      if (const auto* input = op.get<Input>()) inputs_.insert(input->name);
    }
  }

  Let run(const Let& let, std::vector<Let>& before) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || r.dtype() != DType::F32 ||
        r.init() || r.axis_count() != 1)
      return let;
    const std::vector<Expr> list = algebra::factors(r.body());
    if (list.size() != 2) return let;
    const Expr a = integer_element(list[0]);
    const Expr b = integer_element(list[1]);
    if (!a || !b || !are_products(a, b, r) || !algebra::are_operands(a, b, result_axes(let, pool_)))
      return let;
    const Expr axes[] = {r.axis(0)};
    const Expr extents[] = {r.extent(0)};
    const Expr product =
        pool_.binary(Op::Mul, pool_.cast(DType::I32, a), pool_.cast(DType::I32, b));
    const Let sum{names_.fresh(fmt::format("{}.i32", let.name.str())), let.axes, DType::I32,
                  pool_.reduce(expr::Reducer::Sum, product, axes, extents)};
    before.push_back(sum);
    Let out = let;
    out.body = pool_.cast(DType::F32, element(sum, pool_));
    return out;
  }

 private:
  // Whether the matrix unit has such products, as they lie or transposed, and their sum stays in
  // i32.
  bool are_products(Expr a, Expr b, Expr sum) const {
    const Expr n = sum.extent(0);
    if (!ir::operand_width(matrix_, a.dtype()) || n.op() != Op::IntConst) return false;
    const int64_t most = magnitude(a.dtype()) * magnitude(b.dtype());
    return n.integer() <= expr::int_max(DType::I32) / most && has_place(a, sum.axis(0)) &&
           has_place(b, sum.axis(0)) && a.name() != b.name();
  }

  bool has_place(Expr element, Expr depth) const {
    return is_plain(element) && element.args().size() >= 2 &&
           (element.args().back() == depth || inputs_.contains(element.name()));
  }

  expr::ExprPool& pool_;
  TensorNames names_;
  const target::Matrix& matrix_;
  std::unordered_set<ir::Name> inputs_;
};

}  // namespace

std::optional<ir::Program> integer_sums(const ir::Program& program, ir::PassContext& context) {
  Rewriter rewriter(program, context.pool);
  return map_equations(
      program, [&](const Let& let, std::vector<Let>& before) { return rewriter.run(let, before); });
}

}  // namespace nautilus::spec
