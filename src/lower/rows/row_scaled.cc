// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_scaled.h"

#include <algorithm>

#include "algebra/repair.h"
#include "algebra/vanishing.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using Extreme = RowScaledSum::Extreme;

// The factor of a term that depends on the extremes, if it consists of exponentials of them.
std::optional<algebra::RunningPart> factor_of(Expr term, const RowGroup& group,
                                              const std::vector<Extreme>& extremes,
                                              expr::ExprPool& pool) {
  std::unordered_set<Expr> running;
  for (const Extreme& m : extremes) running.insert(m.read);
  std::unordered_set<Expr> streamed = {pool.index(group.column.name)};
  for (const ir::Axis& a : group.outer) streamed.insert(pool.index(a.name));
  const algebra::Signs signs;
  algebra::Separator separator(pool, running, streamed, signs);
  const auto separated = separator.separate(term);
  if (!separated || separated->terms.size() != 1) return std::nullopt;
  const algebra::RunningPart& part = separated->terms[0].running;
  const auto is_safe = [&](const algebra::ExpTerm& t) {
    return std::any_of(extremes.begin(), extremes.end(), [&](const Extreme& m) {
      return t.core == m.read || algebra::unguarded(t.core, m.identity()) == m.read;
    });
  };
  const bool is_one = part.powers.empty() && !part.exponents.empty() &&
                      std::all_of(part.exponents.begin(), part.exponents.end(), is_safe);
  return is_one ? std::optional(part) : std::nullopt;
}

}  // namespace

double RowScaledSum::Extreme::identity() const {
  return expr::identity(reducer, expr::DType::F32).f;
}

std::optional<RowScaledSum> row_scaled_sum(const RowGroup& group, size_t statement, Expr term,
                                           std::vector<Extreme> extremes, expr::ExprPool& pool) {
  // What is guarded already stays as it is.
  expr::Substitution to_guarded;
  for (const Extreme& m : extremes) {
    to_guarded.emplace(m.read, algebra::guarded_reference(pool, m.read, m.identity()));
    expr::for_each(term, [&](Expr e) {
      if (algebra::unguarded(e, m.identity()) == m.read) to_guarded.emplace(e, e);
    });
  }
  RowScaledSum out{
      statement, std::move(extremes), expr::substitute(pool, term, to_guarded), {}, {}};
  for (const Extreme& m : out.extremes) {
    if (!algebra::vanishes_at(out.term, {{m.terms, m.identity()}}, {})) return std::nullopt;
  }
  const auto moving = factor_of(out.term, group, out.extremes, pool);
  const auto last = factor_of(term, group, out.extremes, pool);
  if (!moving || !last) return std::nullopt;
  out.moving = *moving;
  out.last = *last;
  return out;
}

}  // namespace nautilus::lower
