// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/nest_scalars.h"

#include <algorithm>

#include "expr/rules/simplify.h"
#include "ir/decl.h"
#include "ir/walk.h"

namespace nautilus::matile {

namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

}  // namespace

Scalars::Scalars(const ir::Program& program, const Kernel&, const Role& role, expr::ExprPool& pool)
    : pool_(pool), facts_(ir::facts_of(program, pool)), groups_(role.count.value_or(1)) {
  if (role.index) {
    group_index_ = pool.index(role.index);
    facts_.add_size(group_index_);
    least_.emplace(group_index_, 0);
  }
  for (const Op& op : program.body) {
    if (const auto* dim = op.get<ir::Dim>()) least_.emplace(pool.index(dim->name), 0);
    const auto* fact = op.get<ir::Fact>();
    if (!fact || fact->condition.op() != EK::Ge) continue;
    const auto it = least_.find(fact->condition[0]);
    if (it != least_.end() && fact->condition[1].op() == EK::IntConst)
      it->second = std::max(it->second, fact->condition[1].integer());
  }
  const auto add = [&](const Let& let) {
    const Expr var = pool_.var(let.name, let.value.dtype());
    const Expr value = inlined(let.value);
    all_.insert_or_assign(var, value);
    if (group_index_ && expr::depends_on(value, group_index_))
      group_.insert_or_assign(var, without_group_lets(let.value));
  };
  for (const Op& op : program.body) {
    if (const auto* let = op.get<Let>()) add(*let);
  }
  ir::for_each_op(role.body, [&](const Op& op) {
    if (const auto* let = op.get<Let>()) add(*let);
    if (const auto* each = op.get<Each>()) {
      facts_.add_size(pool_.index(each->var));
      least_.emplace(pool_.index(each->var), 0);
    }
  });
}

bool Scalars::depends_on_group(Expr e) const {
  return group_index_ && expr::depends_on(without_group_lets(e), group_index_);
}

bool Scalars::depends_on(Expr e, ir::Name var) const {
  return expr::depends_on(inlined(e), pool_.index(var));
}

bool Scalars::is_nonnegative(Expr e) const {
  const auto [it, is_new] = proven_.try_emplace(e, false);
  if (is_new) it->second = prove_nonnegative(inlined(e));
  return it->second;
}

bool Scalars::prove_nonnegative(Expr e) const {
  const auto p = expr::Poly::of(e);
  if (!p) return false;
  if (facts_.is_nonnegative(*p)) return true;
  const auto least = limit(*p, false);
  return least && *least >= 0;
}

std::optional<int64_t> Scalars::limit(const expr::Poly& p, bool is_upper) const {
  int64_t sum = 0;
  for (const auto& [monomial, coefficient] : p.terms()) {
    const bool takes_upper = (coefficient > 0) == is_upper;
    int64_t product = 1;
    for (Expr atom : monomial) {
      const auto least = limit(atom, false);
      const auto x = takes_upper ? limit(atom, true) : least;
      // Products of anything but non-negative factors have no simple limits.
      if (!x || (monomial.size() > 1 && (!least || *least < 0))) return std::nullopt;
      if (__builtin_mul_overflow(product, *x, &product)) return std::nullopt;
    }
    int64_t term = 0;
    if (__builtin_mul_overflow(product, coefficient, &term) ||
        __builtin_add_overflow(sum, term, &sum))
      return std::nullopt;
  }
  return sum;
}

std::optional<int64_t> Scalars::limit(Expr e, bool is_upper) const {
  if (e.op() == EK::IntConst) return e.integer();
  if (const auto it = least_.find(e); it != least_.end())
    return is_upper ? std::nullopt : std::optional(it->second);
  const auto of = [&](Expr x, bool upper) -> std::optional<int64_t> {
    const auto p = expr::Poly::of(x);
    return p ? limit(*p, upper) : std::nullopt;
  };
  switch (e.op()) {
    case EK::Min:
    case EK::Max: {
      const auto x = of(e[0], is_upper);
      const auto y = of(e[1], is_upper);
      if (x && y) return e.op() == EK::Min ? std::min(*x, *y) : std::max(*x, *y);
      // Of a maximum one operand is enough below, of a minimum one above.
      return (e.op() == EK::Max) != is_upper ? (x ? x : y) : std::nullopt;
    }
    case EK::FloorDiv: {
      const auto d = of(e[1], false);
      if (!d || *d < 1) return std::nullopt;
      const auto x = of(e[0], is_upper);
      if (!x) return std::nullopt;
      if (e[1].op() == EK::IntConst) return (*x - (*x % *d + *d) % *d) / *d;
      // Division by an unknown divisor moves a non-negative number closer to 0.
      return *x < 0 ? std::nullopt : std::optional<int64_t>(is_upper ? *x / *d : 0);
    }
    case EK::Mod:
      return is_upper || !of(e[1], false) || *of(e[1], false) < 1 ? std::nullopt
                                                                  : std::optional<int64_t>(0);
    case EK::Add:
    case EK::Sub:
    case EK::Mul:
      return of(e, is_upper);
    default:
      return std::nullopt;
  }
}

bool Scalars::is_at_least(Expr a, Expr b) const {
  return is_nonnegative(pool_.binary(EK::Sub, a, b));
}

bool Scalars::is_equal(Expr a, Expr b) const {
  return a == b || expr::same_index(inlined(a), inlined(b));
}

std::optional<int> Scalars::direction_in_group(Expr e) const {
  if (!expr::depends_on(e, group_index_)) return 0;
  if (e == group_index_) return 1;
  const auto both = [&](Expr a, Expr b, int sign) -> std::optional<int> {
    const auto x = direction_in_group(a);
    const auto y = direction_in_group(b);
    if (!x || !y) return std::nullopt;
    if (*x == 0) return sign * *y;
    if (*y == 0 || *x == sign * *y) return *x;
    return std::nullopt;
  };
  switch (e.op()) {
    case EK::Add:
    case EK::Min:
    case EK::Max:
      return both(e[0], e[1], 1);
    case EK::Sub:
      return both(e[0], e[1], -1);
    case EK::Mul:
      for (size_t k = 0; k < 2; ++k) {
        if (expr::depends_on(e[1 - k], group_index_) || !is_nonnegative(e[1 - k])) continue;
        return direction_in_group(e[k]);
      }
      return std::nullopt;
    case EK::FloorDiv:
      if (expr::depends_on(e[1], group_index_) || !is_nonnegative(e[1])) return std::nullopt;
      return direction_in_group(e[0]);
    default:
      return std::nullopt;
  }
}

Expr Scalars::extreme_over_groups(Expr e, bool is_greatest) const {
  const Expr written = without_group_lets(e);
  if (!group_index_) return written;
  const auto direction = direction_in_group(written);
  if (!direction && expr::tensors_read(written).empty()) return {};
  if (!direction) {
    // Numbers that are read for each group: the extreme of all of them.
    if (written.op() == EK::Add && written[1].op() == EK::IntConst)
      return pool_.binary(EK::Add, extreme_over_groups(written[0], is_greatest), written[1]);
    Expr all;
    for (int64_t g = 0; g < groups_; ++g) {
      const Expr one = expr::substitute(pool_, written, {{group_index_, pool_.integer(g)}});
      all = all ? pool_.binary(is_greatest ? EK::Max : EK::Min, all, one) : one;
    }
    return expr::Simplifier(pool_).simplify(all);
  }
  const bool takes_last = (*direction >= 0) == is_greatest;
  expr::Substitution group{{group_index_, pool_.integer(takes_last ? groups_ - 1 : 0)}};
  return expr::Simplifier(pool_).simplify(expr::substitute(pool_, written, group));
}

}  // namespace nautilus::matile
