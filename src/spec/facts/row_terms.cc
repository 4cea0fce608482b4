// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/row_terms.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "spec/equations.h"

namespace nautilus::spec {

using expr::Expr;
using expr::Op;
using expr::Reducer;

namespace {
// Equations share their parts; written out as trees they may be too large to look at.
constexpr int kMaxTermSteps = 2000;
}  // namespace

bool is_infinity(Expr e) { return e.op() == Op::FloatConst && std::isinf(e.number()); }

RowTerms::RowTerms(const ir::Program& program, expr::ExprPool& pool)
    : pool_(pool), values_(program, pool, equations_) {
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) continue;
    equations_.emplace(let->name, *let);
    expr::for_each(let->body, [&](Expr e) { handles_infinity_ |= is_infinity(e); });
  }
}

std::pair<std::vector<Expr>, size_t> RowTerms::of(const Let& let) {
  const Expr r = let.body;
  const bool is_extreme = r.op() == Op::Reduce && !r.init() &&
                          (r.reducer() == Reducer::Max || r.reducer() == Reducer::Min);
  terms_.clear();
  missing_.clear();
  is_all_ = is_extreme;
  if (is_extreme) {
    for (size_t k = 0; k < r.axis_count(); ++k) missing_.push_back(r.axis(k));
    visit(r.body());
    return {terms_, let.axes.size() + r.axis_count()};
  }
  for (const ir::Axis& a : let.axes) missing_.push_back(pool_.index(a.name));
  if (let.axes.size() >= 2) visit(r);
  return {terms_, let.axes.size()};
}

void RowTerms::visit(Expr e) {
  if (!is_float(e.dtype())) return;
  if (e.op() == Op::Add || e.op() == Op::Sub) {
    addend(e[0]);
    addend(e[1]);
  } else if (e.op() == Op::Neg) {
    visit(e[0]);
  } else if (e.op() == Op::Select && is_infinity(e[2])) {
    visit(e[1]);
  } else if (e.op() == Op::Select && is_infinity(e[1])) {
    visit(e[2]);
  }
}

void RowTerms::addend(Expr e) {
  const auto lacks = [&](Expr axis) { return !expr::depends_on(e, axis); };
  const bool is_row = is_all_ ? std::all_of(missing_.begin(), missing_.end(), lacks)
                              : std::any_of(missing_.begin(), missing_.end(), lacks);
  if (!is_row) return visit(e);
  if (!e.is_const() && !expr::has_reduce(e) && values_.is_finite(e)) terms_.push_back(e);
}

bool RowTerms::may_be_mask(Expr term) {
  steps_ = 0;
  return handles_infinity_ && is_mask(term);
}

bool RowTerms::is_mask(Expr e) {
  if (++steps_ > kMaxTermSteps) return true;
  const auto any_of = [&](std::initializer_list<size_t> args) {
    return std::any_of(args.begin(), args.end(), [&](size_t k) { return is_mask(e[k]); });
  };
  switch (e.op()) {
    case Op::Read: {
      const auto it = equations_.find(e.name());
      if (it == equations_.end()) return is_float(e.dtype());
      return !expr::has_reduce(it->second.body) && is_mask(body_at(it->second, e, pool_));
    }
    case Op::Neg:
    case Op::Cast:
      return any_of({0});
    case Op::Add:
    case Op::Sub:
    case Op::Min:
    case Op::Max:
      return any_of({0, 1});
    case Op::Select:
      return any_of({1, 2});
    case Op::Mul:
    case Op::Div:
      return (expr::tensors_read(e[0]).empty() || expr::tensors_read(e[1]).empty()) &&
             any_of({0, 1});
    default:
      return false;
  }
}

}  // namespace nautilus::spec
