// SPDX-License-Identifier: Apache-2.0
// The predicted time of a kernel as an expression of the plan.
#include <algorithm>
#include <cmath>

#include "schedule/nest/cost.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

int64_t rounded(double x) { return std::max<int64_t>(1, std::llround(x)); }

}  // namespace

Expr cycles_of(const NestCost& cost, const Target& target, expr::ExprPool& pool) {
  const auto bin = [&](Op op, Expr a, Expr b) { return pool.binary(op, a, b); };
  const auto num = [&](int64_t n) { return pool.integer(n); };
  const auto scaled = [&](Expr x, Expr n) { return n.is_int(1) ? x : bin(Op::Mul, x, n); };
  const auto ceil_div = [&](Expr x, int64_t n) {
    return n == 1 ? x : bin(Op::FloorDiv, bin(Op::Add, x, num(n - 1)), num(n));
  };
  Expr tiles = num(1);
  expr::Substitution first;
  expr::Substitution middle;
  expr::Substitution last;
  bool is_growing = false;
  for (const ir::Axis& a : cost.grid) {
    const Expr var = pool.index(a.name);
    const Expr n = var == cost.row_tile ? ceil_div(a.extent, cost.cluster) : a.extent;
    tiles = tiles.is_int(1) ? n : bin(Op::Mul, tiles, n);
    if (!cost.steps || !expr::depends_on(cost.steps, var)) continue;
    is_growing = true;
    const Expr end = bin(Op::Sub, a.extent, num(1));
    first.emplace(var, num(0));
    middle.emplace(var, bin(Op::FloorDiv, end, num(2)));
    last.emplace(var, end);
  }
  Expr step = num(rounded(cost.step));
  if (!cost.ragged.empty() && cost.step_unaligned > cost.step) {
    Expr ragged;
    for (Expr r : cost.ragged) ragged = ragged ? bin(Op::Or, ragged, r) : r;
    step = pool.select(ragged, num(rounded(cost.step_unaligned)), step);
  }
  const Expr once = num(rounded(cost.once));
  // Two tiles of groups that take turns need the steps of both, or of one and all that it has left.
  const auto tile = [&](Expr steps) {
    Expr all = scaled(steps, step);
    if (cost.hidden > 0)
      all = bin(Op::Max, all,
                bin(Op::FloorDiv, bin(Op::Add, all, num(rounded(cost.hidden))), num(2)));
    return bin(Op::Add, all, once);
  };
  const int64_t units = target.board.sms / cost.cluster * cost.resident;
  const Expr steps = cost.steps ? cost.steps : num(1);
  Expr all;
  if (!is_growing) {
    all = bin(Op::Mul, ceil_div(tiles, units), tile(steps));
  } else {
    const auto at = [&](const expr::Substitution& s) { return expr::substitute(pool, steps, s); };
    const Expr longest = tile(bin(Op::Max, at(first), at(last)));
    const Expr fetch = num(rounded(target.costs.dynamic_cycles));
    const Expr mean = bin(Op::Add, tile(at(middle)), fetch);
    const Expr spread = bin(Op::Add, bin(Op::FloorDiv, bin(Op::Mul, tiles, mean), num(units)),
                            bin(Op::Add, once, num(rounded(cost.step))));
    all = bin(Op::Max, longest, spread);
  }
  return cost.kernel_once > 0 ? bin(Op::Add, all, num(rounded(cost.kernel_once))) : all;
}

}  // namespace nautilus::schedule
