// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/guards.h"

#include "expr/walk.h"
#include "spec/facts/ranges.h"

namespace nautilus::spec {

using expr::Expr;
using expr::Facts;
using expr::Op;

namespace {

class ConditionGuard {
 public:
  ConditionGuard(const std::map<std::string, ir::TensorType>& types, expr::ExprPool& pool)
      : types_(types), pool_(pool) {}

  Expr guarded(Expr e, const Facts& facts) {
    if (!has_condition(e)) return e;
    std::vector<Expr> args(e.args().begin(), e.args().end());
    if (e.op() == Op::And || e.op() == Op::Or) {
      const Expr left = guarded(e[0], facts);
      const Facts there = behind(e[0], e.op() == Op::And, facts);
      const Expr right = guarded(e[1], there);
      if (is_safe(e[1], facts)) return pool_.binary(e.op(), left, right);
      return e.op() == Op::And ? pool_.select(left, right, pool_.boolean(false))
                               : pool_.select(left, pool_.boolean(true), right);
    }
    for (size_t k = 0; k < args.size(); ++k) args[k] = guarded(args[k], at(e, k, facts));
    return pool_.with_args(e, args);
  }

 private:
  // Whether there is a condition with reads to its right at all; most expressions have none.
  bool has_condition(Expr e) {
    const auto it = has_condition_.find(e);
    if (it != has_condition_.end()) return it->second;
    const bool is_condition = e.op() == Op::And || e.op() == Op::Or;
    bool found = is_condition && !expr::tensors_read(e[1]).empty();
    for (Expr a : e.args()) found = found || has_condition(a);
    has_condition_.emplace(e, found);
    return found;
  }

  static Facts behind(Expr condition, bool holds, Facts facts) {
    holds ? facts.assume(condition) : facts.assume_not(condition);
    return facts;
  }

  // The facts that hold where operand k is evaluated.
  static Facts at(Expr e, size_t k, const Facts& facts) {
    if (e.op() == Op::Select && k > 0) return behind(e[0], k == 1, facts);
    if ((e.op() == Op::And || e.op() == Op::Or) && k == 1)
      return behind(e[0], e.op() == Op::And, facts);
    if (e.op() != Op::Reduce || k > 0) return facts;
    Facts inner = facts;
    for (size_t a = 0; a < e.axis_count(); ++a) inner.add_axis(e.axis(a), e.extent(a));
    return inner;
  }

  bool is_safe(Expr e, const Facts& facts) {
    if (expr::tensors_read(e).empty()) return true;
    if (e.op() == Op::Read) {
      const auto type = types_.find(std::string(e.name().str()));
      if (type != types_.end() && !is_inside(e, type->second, facts, pool_)) return false;
    }
    for (size_t k = 0; k < e.args().size(); ++k) {
      if (!is_safe(e[k], at(e, k, facts))) return false;
    }
    return true;
  }

  const std::map<std::string, ir::TensorType>& types_;
  expr::ExprPool& pool_;
  std::unordered_map<Expr, bool> has_condition_;
};

}  // namespace

Expr guard_conditions(const Let& let, const Facts& facts,
                      const std::map<std::string, ir::TensorType>& types, expr::ExprPool& pool) {
  Facts inner = facts;
  for (const ir::Axis& a : let.axes) inner.add_axis(pool.index(a.name), a.extent);
  return ConditionGuard(types, pool).guarded(let.body, inner);
}

}  // namespace nautilus::spec
