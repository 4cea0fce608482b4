// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/chunks/chunk_decays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "expr/walk.h"

namespace nautilus::spec {

using expr::Expr;
using DecayOp = expr::Op;

namespace {

// exp2 of it is 0 in f32, and sums of 256 of them are exact enough.
constexpr double kLeastLog2 = -150;
constexpr double kGreatestLog2 = 126;

}  // namespace

Expr Chunks::place(Expr at, expr::ExprPool& pool) const {
  return pool.binary(DecayOp::Add, pool.binary(DecayOp::Mul, chunk, pool.integer(length)), at);
}

Expr Chunks::is_inside(Expr at, expr::ExprPool& pool) const {
  return pool.binary(DecayOp::Lt, place(at, pool), steps.extent);
}

bool ChunkDecays::is_steady() const {
  return !expr::depends_on(decay_, pool_.index(chunks_.steps.name));
}

// Of the absolute value. Exponentials need no logarithm.
Expr ChunkDecays::log2_of(Expr e) {
  switch (e.op()) {
    case DecayOp::Mul:
      return pool_.binary(DecayOp::Add, log2_of(e[0]), log2_of(e[1]));
    case DecayOp::Exp2:
      return e[0];
    case DecayOp::Select:
      return pool_.select(e[0], log2_of(e[1]), log2_of(e[2]));
    case DecayOp::FloatConst:
      return pool_.floating(std::max(std::log2(std::abs(e.number())), kLeastLog2), e.dtype());
    case DecayOp::Exp:
      return pool_.binary(DecayOp::Mul, e[0], pool_.constant(std::numbers::log2e, e.dtype()));
    default:
      return pool_.unary(DecayOp::Log2,
                         signs_.is_nonnegative(e) ? e : pool_.unary(DecayOp::Abs, e));
  }
}

void ChunkDecays::add(std::string_view stem, TensorNames& names, std::vector<Let>& out) {
  if (!decay_) return;
  const expr::DType f32 = expr::DType::F32;
  ir::Axes own;
  for (const ir::Axis& a : axes_) {
    if (a.name != chunks_.steps.name && expr::depends_on(decay_, pool_.index(a.name)))
      own.push_back(a);
  }
  const Expr log2 = pool_.binary(DecayOp::Max, log2_of(decay_), pool_.floating(kLeastLog2, f32));
  const Expr is_negative = pool_.binary(DecayOp::Lt, decay_, pool_.floating(0, f32));
  const Expr one = pool_.floating(1, f32);
  const Expr sign = pool_.select(is_negative, pool_.floating(-1, f32), one);
  const Expr key = chunks_.key;
  const Expr row = chunks_.row;
  // Of the steps of a chunk up to each of them.
  const auto upto = [&](Expr e, expr::Reducer reducer, Expr none) {
    const Expr at =
        expr::substitute(pool_, e, {{pool_.index(chunks_.steps.name), chunks_.place(key, pool_)}});
    const Expr term = pool_.select(chunks_.is_inside(key, pool_), at, none);
    return pool_.reduce(reducer, pool_.select(pool_.binary(DecayOp::Le, key, row), term, none),
                        std::array{key}, std::array{pool_.integer(chunks_.length)});
  };
  const Expr steps = pool_.binary(DecayOp::Add, row, pool_.integer(1));
  const auto equation = [&](std::string_view what, Expr e, expr::Reducer reducer, Expr none) {
    Let let{names.fresh(fmt::format("{}.{}", stem, what)), own, f32, {}};
    if (!is_steady()) let.axes.push_back({chunks_.chunk.name(), chunks_.count});
    let.axes.push_back({row.name(), pool_.integer(chunks_.length)});
    if (!is_steady())
      let.body = upto(e, reducer, none);
    else if (reducer == expr::Reducer::Sum)
      let.body = pool_.binary(DecayOp::Mul, pool_.cast(f32, steps), e);
    else
      let.body = pool_.select(
          pool_.binary(DecayOp::Eq, pool_.binary(DecayOp::Mod, steps, pool_.integer(2)),
                       pool_.integer(1)),
          e, none);
    out.push_back(let);
    return let;
  };
  log2_ = equation("log2", log2, expr::Reducer::Sum, pool_.floating(0, f32));
  if (!signs_.is_nonnegative(decay_)) sign_ = equation("sign", sign, expr::Reducer::Prod, one);
}

Expr ChunkDecays::sums(const Let& let, const expr::Substitution& at, Expr place) {
  std::vector<Expr> indices;
  for (const ir::Axis& a : let.axes) {
    const Expr axis = pool_.index(a.name);
    indices.push_back(axis == chunks_.row ? place : axis == chunks_.chunk ? axis : at.at(axis));
  }
  return pool_.read(let.name, let.dtype, indices);
}

Expr ChunkDecays::power(const expr::Substitution& at, Expr upto, Expr from, Expr has_steps) {
  const Expr zero = pool_.floating(0, expr::DType::F32);
  const Expr one = pool_.floating(1, expr::DType::F32);
  Expr log2 = sums(*log2_, at, upto);
  if (from) log2 = pool_.binary(DecayOp::Sub, log2, sums(*log2_, at, from));
  if (has_steps) log2 = pool_.select(has_steps, log2, zero);
  // Of steps in the wrong order, which nothing counts, the power stays finite.
  if (from) log2 = pool_.binary(DecayOp::Min, log2, pool_.floating(kGreatestLog2, log2.dtype()));
  Expr out = pool_.unary(DecayOp::Exp2, log2);
  if (!sign_) return out;
  Expr sign = sums(*sign_, at, upto);
  if (from) sign = pool_.binary(DecayOp::Mul, sign, sums(*sign_, at, from));
  if (has_steps) sign = pool_.select(has_steps, sign, one);
  return pool_.binary(DecayOp::Mul, out, sign);
}

Expr ChunkDecays::last() {
  const Expr end = pool_.integer(chunks_.length - 1);
  // Steps after the last one have no decay, so that sums do not change.
  if (!is_steady()) return end;
  const Expr begin = pool_.binary(DecayOp::Mul, chunks_.chunk, pool_.integer(chunks_.length));
  const Expr left = pool_.binary(DecayOp::Sub, chunks_.steps.extent, begin);
  return pool_.binary(DecayOp::Min, pool_.binary(DecayOp::Add, left, pool_.integer(-1)), end);
}

Expr ChunkDecays::between(const expr::Substitution& at, bool is_before) {
  if (!decay_) return {};
  // Before the first row there is no step, and nothing reads the product.
  const Expr row = chunks_.row;
  const Expr before = pool_.binary(DecayOp::Add, row, pool_.integer(-1));
  return power(at, is_before ? pool_.binary(DecayOp::Max, before, pool_.integer(0)) : row,
               chunks_.key, {});
}

Expr ChunkDecays::to_end(const expr::Substitution& at) {
  return decay_ ? power(at, last(), chunks_.key, {}) : Expr();
}

Expr ChunkDecays::up_to(const expr::Substitution& at, bool is_before) {
  if (!decay_) return {};
  const Expr row = chunks_.row;
  if (!is_before) return power(at, row, {}, {});
  const Expr before = pool_.binary(DecayOp::Add, row, pool_.integer(-1));
  return power(at, pool_.binary(DecayOp::Max, before, pool_.integer(0)), {},
               pool_.binary(DecayOp::Ge, row, pool_.integer(1)));
}

Expr ChunkDecays::whole(const expr::Substitution& at) {
  return decay_ ? power(at, last(), {}, {}) : Expr();
}

Expr ChunkDecays::whole_before(const expr::Substitution& at) {
  if (!decay_) return {};
  const Expr is_later = pool_.binary(DecayOp::Ge, chunks_.chunk, pool_.integer(1));
  const Expr previous = pool_.binary(DecayOp::Add, chunks_.chunk, pool_.integer(-1));
  const Expr one = pool_.floating(1, expr::DType::F32);
  const Expr moved = expr::substitute(pool_, whole(at), {{chunks_.chunk, previous}});
  // Each element under the condition: it can be loaded before the step needs it.
  return expr::rebuild(pool_, moved, [&](Expr e) {
    if (e.op() != DecayOp::Read) return e;
    const bool is_log2 = e.name() == log2_->name;
    return pool_.select(is_later, e, is_log2 ? pool_.floating(0, e.dtype()) : one);
  });
}

}  // namespace nautilus::spec
