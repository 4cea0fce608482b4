// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/hoist_operand_masks.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

bool is_zero_number(Expr e) { return e.op() == Op::FloatConst && e.number() == 0; }

struct Parts {
  std::vector<Expr> staying;
  std::vector<Expr> leaving;
};

class Freeing {
 public:
  Freeing(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), facts_(ir::facts_of(program, pool)) {
    for (const ir::Op& op : program.body) {
      if (const auto* input = op.get<Input>())
        inputs_.emplace(std::string(input->name.str()), input->type);
    }
  }

  Let equation(const Let& let) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || let.axes.size() < 2 ||
        r.dtype() != expr::DType::F32)
      return let;
    around_ = facts_;
    for (const ir::Axis& a : let.axes) around_.add_axis(pool_.index(a.name), a.extent);
    for (size_t k = 0; k < r.axis_count(); ++k) around_.add_axis(r.axis(k), r.extent(k));
    Parts parts;
    for (Expr f : algebra::factors(r.body())) {
      Parts own = f.op() == Op::Select ? opened(f) : Parts{{f}, {}};
      parts.staying.insert(parts.staying.end(), own.staying.begin(), own.staying.end());
      parts.leaving.insert(parts.leaving.end(), own.leaving.begin(), own.leaving.end());
    }
    const std::vector<Expr> results = result_axes(let, pool_);
    const bool is_product = !parts.leaving.empty() &&
                            std::all_of(parts.leaving.begin(), parts.leaving.end(), [&](Expr f) {
                              return algebra::has_own_axis({&f, 1}, parts.staying, results) &&
                                     algebra::has_own_axis(parts.staying, {&f, 1}, results);
                            });
    if (!is_product) return let;
    std::vector<Expr> args(r.args().begin(), r.args().end());
    parts.staying.insert(parts.staying.end(), parts.leaving.begin(), parts.leaving.end());
    args[0] = product(parts.staying);
    Let out = let;
    out.body = pool_.with_args(r, args);
    return out;
  }

 private:
  // The factors that stay under the condition, as one, and those that leave it.
  Parts opened(Expr select) {
    const bool is_first = is_zero_number(select[2]);
    if (!is_first && !is_zero_number(select[1])) return {{select}, {}};
    Parts inside;
    for (Expr f : algebra::factors(is_first ? select[1] : select[2])) {
      if (is_free(f)) {
        inside.leaving.push_back(f);
        continue;
      }
      Parts own = f.op() == Op::Select ? opened(f) : Parts{{f}, {}};
      inside.staying.push_back(product(own.staying));
      inside.leaving.insert(inside.leaving.end(), own.leaving.begin(), own.leaving.end());
    }
    // Of elements alone the first one stays, unless it is the only one.
    if (inside.staying.empty() && inside.leaving.size() > 1) {
      inside.staying.push_back(inside.leaving.front());
      inside.leaving.erase(inside.leaving.begin());
    }
    const Expr zero = pool_.constant(0, select.dtype());
    const Expr rest =
        inside.staying.empty() ? pool_.constant(1, select.dtype()) : product(inside.staying);
    inside.staying = {is_first ? pool_.select(select[0], rest, zero)
                               : pool_.select(select[0], zero, rest)};
    return inside;
  }

  Expr product(const std::vector<Expr>& list) {
    Expr out;
    for (Expr f : list) out = out ? pool_.binary(Op::Mul, out, f) : f;
    return out;
  }

  // An element of an input of 16 bits that is there, whatever the condition says.
  bool is_free(Expr f) {
    if (!algebra::is_half_element(f)) return false;
    const Expr e = algebra::element_of(f);
    const auto it = inputs_.find(std::string(e.name().str()));
    return it != inputs_.end() && is_inside(e, it->second, around_, pool_);
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  expr::Facts around_;
  std::map<std::string, ir::TensorType> inputs_;
};

}  // namespace

std::optional<ir::Program> hoist_operand_masks(const ir::Program& program,
                                               ir::PassContext& context) {
  Freeing freeing(program, context.pool);
  return map_equations(program, [&](const Let& let) { return freeing.equation(let); });
}

}  // namespace nautilus::spec
