// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/grid_facts.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "expr/rules/simplify.h"
#include "ir/decl.h"
#include "ir/machine.h"
#include "ir/walk.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

GridFacts grid_facts(const ir::Axes& axes, const ir::Block& body, const NestScope& scope) {
  expr::ExprPool& pool = scope.pool;
  GridFacts facts;
  facts.machine = ir::machine_name(scope.program, pool);
  // Scalars written out, so that a bound that depends on an axis is seen to.
  expr::Substitution lets;
  ir::for_each_op(body, [&](const Op& op) {
    const auto* let = op.get<vrtile::Let>();
    if (let)
      lets.insert_or_assign(pool.var(let->name, let->value.dtype()),
                            expr::substitute(pool, let->value, lets));
  });
  const auto depends = [&](Expr e, const ir::Axis& a) {
    return expr::depends_on(expr::substitute(pool, e, lets), pool.index(a.name));
  };
  std::unordered_set<Expr> computed;
  for (const Op& op : scope.program.body) {
    if (const auto* s = op.get<ir::Size>()) computed.insert(pool.index(s->name));
  }
  std::set<std::string> operands;
  std::set<std::string> looped;
  ir::for_each_op(body, [&](const Op& op) {
    if (const auto* d = op.get<vrtile::Dot>()) {
      operands.emplace(d->a.str());
      operands.emplace(d->b.str());
    }
    const auto* loop = op.get<vrtile::For>();
    if (!loop) return;
    for (const Op& inner : loop->body) {
      if (const auto* l = inner.get<vrtile::Load>()) looped.emplace(l->name.str());
    }
    for (size_t k = 0; k < axes.size(); ++k) {
      // Parts that a schedule made of a loop are alike.
      if (computed.contains(axes[k].extent)) continue;
      if (depends(loop->from, axes[k]) || depends(loop->to, axes[k]))
        facts.growing = static_cast<int>(k);
    }
  });
  // Which axes the tiles depend on that are read from memory step by step or by products.
  std::vector<std::set<size_t>> sets;
  std::set<std::string> counted;
  ir::for_each_op(body, [&](const Op& op) {
    const auto* l = op.get<vrtile::Load>();
    if (!l) return;
    const bool is_operand = operands.contains(std::string(l->name.str()));
    if (!is_operand && (l->axes.size() != 2 || !looped.contains(std::string(l->name.str()))))
      return;
    std::set<size_t> set;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (depends(l->value, axes[k])) set.insert(k);
    }
    sets.push_back(set);
    // Read again by all tiles along the growing axis.
    if (facts.growing < 0 || !is_operand || set.contains(static_cast<size_t>(facts.growing)) ||
        !looped.contains(std::string(l->name.str())) ||
        !counted.emplace(l->value.name().str()).second)
      return;
    const auto type = scope.tensors.find(l->value.name().str());
    if (type == scope.tensors.end()) return;
    Expr bytes = pool.integer(expr::bytes(type->second.dtype));
    for (size_t d = 0; d < l->value.args().size(); ++d) {
      bool is_walked = true;
      for (const ir::Axis& a : axes) is_walked &= !depends(l->value[d], a);
      if (is_walked) bytes = pool.binary(EK::Mul, type->second.dims[d], bytes);
    }
    facts.shared_bytes =
        facts.shared_bytes ? pool.binary(EK::Add, facts.shared_bytes, bytes) : bytes;
  });
  if (facts.shared_bytes) facts.shared_bytes = expr::Simplifier(pool).simplify(facts.shared_bytes);
  for (size_t k = 0; k < axes.size() && facts.growing >= 0; ++k) {
    const auto growing = static_cast<size_t>(facts.growing);
    const bool is_repeated = std::any_of(sets.begin(), sets.end(), [&](const auto& s) {
      return s.contains(growing) && !s.contains(k);
    });
    if (k != growing && is_repeated) facts.repeated = static_cast<int>(k);
  }
  for (size_t r = 0; r < axes.size() && facts.growing < 0; ++r) {
    for (size_t c = r + 1; c < axes.size(); ++c) {
      bool has_row = false;
      bool has_col = false;
      for (const auto& s : sets) {
        has_row |= s.contains(r) && !s.contains(c);
        has_col |= s.contains(c) && !s.contains(r);
      }
      if (!has_row || !has_col) continue;
      facts.rows = static_cast<int>(r);
      facts.cols = static_cast<int>(c);
    }
  }
  return facts;
}

}  // namespace nautilus::lower
