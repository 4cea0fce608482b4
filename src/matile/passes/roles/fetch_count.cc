// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/fetch_count.h"

#include <algorithm>

#include "expr/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

Expr product(Expr a, Expr b, expr::ExprPool& pool) {
  if (a.is_int(1)) return b;
  if (b.is_int(1)) return a;
  if (a.op() == EK::IntConst && b.op() == EK::IntConst)
    return pool.integer(a.integer() * b.integer());
  return pool.binary(EK::Mul, a, b);
}

Expr sum(Expr a, Expr b, expr::ExprPool& pool) {
  if (a.is_int(0)) return b;
  if (a.op() == EK::IntConst && b.op() == EK::IntConst)
    return pool.integer(a.integer() + b.integer());
  return pool.binary(EK::Add, a, b);
}

Expr steps_of(const Loop& loop, expr::ExprPool& pool) {
  const bool is_up = loop.direction == Direction::Up;
  const Expr low = is_up ? loop.from : loop.to;
  const Expr high = is_up ? loop.to : sum(loop.from, pool.integer(1), pool);
  if (low.op() == EK::IntConst && high.op() == EK::IntConst)
    return pool.integer(std::max<int64_t>(high.integer() - low.integer(), 0));
  const Expr length = low.is_int(0) ? high : pool.binary(EK::Sub, high, low);
  return pool.binary(EK::Max, length, pool.integer(0));
}

// How often the block of an op runs, with `once` fetches each time; null if that is not known.
Expr repeated(const Op& op, Expr once, expr::ExprPool& pool) {
  if (const auto* unroll = op.get<Unroll>()) {
    int64_t copies = 1;
    for (const ir::Axis& a : unroll->axes) copies *= a.extent.integer();
    return product(pool.integer(copies), once, pool);
  }
  const auto* loop = op.get<Loop>();
  if (!loop || expr::depends_on(once, pool.index(loop->var))) return {};
  return product(steps_of(*loop, pool), once, pool);
}

}  // namespace

Expr fetch_count(const ir::Block& block, std::string_view slot_tile, expr::ExprPool& pool) {
  Expr count = pool.integer(0);
  for (const Op& op : block) {
    const auto* f = op.get<Fetch>();
    if (f && f->slot_tile.str() == slot_tile) count = sum(count, pool.integer(1), pool);
    const ir::Block* inner = block_of(op);
    if (!inner) continue;
    const Expr once = fetch_count(*inner, slot_tile, pool);
    if (!once) return {};
    if (once.is_int(0)) continue;
    const Expr all = repeated(op, once, pool);
    if (!all) return {};
    count = sum(count, all, pool);
  }
  return count;
}

}  // namespace nautilus::matile
