// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/affine_scan.h"

#include <fmt/format.h>

#include "algebra/separate.h"
#include "expr/bounds/at_most_zero.h"
#include "expr/print.h"
#include "expr/walk.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using algebra::Rejection;
using expr::Expr;
using AffineOp = expr::Op;

// The one `where(t >= 1, S[t - 1, ..], z)` of a step; null if the state is read otherwise, too.
Expr state_before(const Let& let, size_t along, expr::ExprPool& pool) {
  const Expr t = pool.index(let.axes[along].name);
  std::vector<Expr> at = result_axes(let, pool);
  at[along] = pool.binary(AffineOp::Add, t, pool.integer(-1));
  const Expr last = pool.read(let.name, let.dtype, at);
  const auto first = expr::at_most_zero(pool.binary(AffineOp::Ge, t, pool.integer(1)));
  Expr found;
  expr::for_each(let.body, [&](Expr e) {
    if (e.op() != AffineOp::Select || e[1] != last) return;
    const auto condition = expr::at_most_zero(e[0]);
    if (condition && condition == first && !expr::depends_on(e[2], t)) found = e;
  });
  if (!found) return {};
  const Expr rest = expr::substitute(pool, let.body, {{found, pool.floating(0, let.dtype)}});
  for (ir::Name n : expr::tensors_read(rest)) {
    if (n == let.name) return {};
  }
  return found;
}

bool is_one(Expr e) { return e.op() == AffineOp::FloatConst && e.number() == 1; }

}  // namespace

algebra::Outcome<AffineScan> affine_scan(const EquationGroup& scan, const ir::Program& program,
                                         expr::ExprPool& pool) {
  if (scan.equations.size() != 1) return Rejection{"equations", "its step has several equations"};
  const Let& let = scan.equations[0]->as<Let>();
  if (scan.direction != Direction::Up) return Rejection{"direction", "it runs from the end"};
  if (let.dtype != expr::DType::F32)
    return Rejection{"dtype", fmt::format("its state is {}", expr::name(let.dtype))};
  AffineScan out;
  out.along = scan.along[0];
  const Expr before = state_before(let, out.along, pool);
  if (!before) return Rejection{"state", "the state is read in several ways"};
  out.is_later = before[0];
  out.initial = before[2];
  std::vector<Expr> axes = result_axes(let, pool);
  const Expr symbol = pool.read(pool.name(fmt::format("{}.before", let.name.str())), let.dtype, {});
  const std::unordered_set<Expr> streamed(axes.begin(), axes.end());
  const algebra::Signs signs(program);
  algebra::Separator separator(pool, {symbol}, streamed, signs);
  const auto parts = separator.separate(expr::substitute(pool, let.body, {{before, symbol}}));
  if (!parts) return parts.rejection();
  for (const algebra::SeparatedTerm& part : parts->terms) {
    const auto& [powers, exponents] = part.running;
    if (part.running.is_one()) {
      out.term = part.streamed;
    } else if (exponents.empty() && powers.size() == 1 && powers[0].atom == symbol &&
               powers[0].exponent == 1) {
      out.decay = part.streamed;
    } else {
      const Expr atom = powers.empty() ? exponents[0].core : powers[0].atom;
      return Rejection{
          "power",
          fmt::format("the step is not affine in the state: `{}`",
                      expr::to_string(expr::substitute(pool, atom, {{symbol, before[1]}})))};
    }
  }
  if (!out.term) return Rejection{"term", "its steps add nothing"};
  if (!out.decay) return Rejection{"decay", "its steps do not read the state"};
  if (is_one(out.decay)) out.decay = {};
  return out;
}

}  // namespace nautilus::spec
