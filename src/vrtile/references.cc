// SPDX-License-Identifier: Apache-2.0
#include "vrtile/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "expr/walk.h"
#include "ir/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/empty_step.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

namespace {

Weight reference_weight(bool is_now) {
  Weight w{.kind = Weight::Kind::Shifted};
  (is_now ? w.now : w.old) = Coefficient::one();
  return w;
}

bool is_same(const TileWeight& a, const TileWeight& b) {
  return a.weight.kind == b.weight.kind && a.weight.old == b.weight.old &&
         a.weight.now == b.weight.now && (!a.weight.is_weighted() || a.dim == b.dim);
}

// 0 for all numbers, by its form.
bool is_zero(Expr e) {
  switch (e.op()) {
    case EK::FloatConst:
      return e.number() == 0;
    case EK::Sub:
      return e[0] == e[1] || (is_zero(e[0]) && is_zero(e[1]));
    case EK::Add:
      return is_zero(e[0]) && is_zero(e[1]);
    case EK::Mul:
      return is_zero(e[0]) || is_zero(e[1]);
    case EK::Neg:
    case EK::Cast:
      return is_zero(e[0]);
    default:
      return false;
  }
}

// Weights through a block; false if something outside it depends on the reference.
bool follow(const Block& ops, Weights& weights, const Reference* r) {
  for (const Op& op : ops) {
    if (op.is<Carry>()) continue;
    if (r && defined(op) == r->next.name) {
      if (weights.of(r->local.name()).weight.kind != Weight::Kind::Plain) return false;
      weights.set(r->next.name, {reference_weight(true), 0});
      continue;
    }
    if (const auto* s = op.get<Store>()) {
      bool is_fixed = true;
      for_each_own_expr(op, [&](Expr e) {
        const auto kind = weights.of(e).kind;
        is_fixed &= kind == Weight::Kind::Plain || kind == Weight::Kind::Zero;
      });
      if (!is_fixed || !s->target) return false;
      continue;
    }
    if (op.is<For>() || op.is<Par>() || op.is<Let>()) {
      bool is_used = false;
      ir::for_each_op({op}, [&](const Op& inner) {
        for_each_use(inner, [&](Name n) {
          const auto kind = weights.of(n).weight.kind;
          is_used |= kind != Weight::Kind::Plain && kind != Weight::Kind::Zero;
        });
      });
      if (is_used) return false;
      continue;
    }
    weights.add(op);
  }
  return true;
}

}  // namespace

void References::add(const Op& op) {
  finite_.add(op);
  if (const Name name = defined(op)) definitions_.insert_or_assign(name, op);
}

std::optional<Reference> References::reference(const For& loop, const Carry& c) const {
  if (c.type.dims.size() != 1 || c.type.dtype != ir::DType::F32) return std::nullopt;
  for (const Op& op : loop.body) {
    const auto* s = op.get<Set>();
    if (!s || s->name != c.next) continue;
    if (s->value.op() != EK::Max && s->value.op() != EK::Min) return std::nullopt;
    const Expr at[] = {pool_.index(s->axes[0].name)};
    const Expr mine = pool_.read(c.name, c.type.dtype, at);
    for (size_t k = 0; k < 2; ++k) {
      const Expr other = s->value[1 - k];
      if (s->value[k] == mine && other.op() == EK::Read && other.args().size() == 1 &&
          other[0] == at[0])
        return Reference{c, *s, other};
    }
  }
  return std::nullopt;
}

bool References::has_any_gauge(const For& loop, Reference& r, const Block& after,
                               std::string* why) const {
  const auto not_so = [&](std::string reason) {
    *why = std::move(reason);
    return false;
  };
  const std::string mine(r.carry.name.str());
  std::vector<Carry> carries;
  for (const Op& op : loop.body) {
    if (op.is<For>()) return not_so(fmt::format("the steps of `{}` have loops of their own", mine));
    if (op.is<Carry>() && op.as<Carry>().name != r.carry.name) carries.push_back(op.as<Carry>());
  }
  std::unordered_map<Name, TileWeight> assumed;
  for (const Carry& c : carries) assumed[c.name] = {{.kind = Weight::Kind::Zero}, 0};
  Weights weights(pool_);
  bool is_stable = false;
  for (int round = 0; round < 4 && !is_stable; ++round) {
    weights.clear();
    weights.set(r.carry.name, {reference_weight(false), 0});
    for (const auto& [name, w] : assumed) weights.set(name, w);
    if (!follow(loop.body, weights, &r))
      return not_so(fmt::format("a step stores something that changes with `{}`", mine));
    is_stable = true;
    for (const Carry& c : carries) {
      TileWeight next = weights.of(c.next);
      if (next.weight.kind == Weight::Kind::Bad || !next.weight.old.is_zero())
        return not_so(
            fmt::format("`{}` is not known to change by a factor with `{}`", c.name.str(), mine));
      std::swap(next.weight.old, next.weight.now);
      is_stable &= is_same(next, assumed.at(c.name));
      assumed.at(c.name) = next;
    }
  }
  if (!is_stable)
    return not_so(fmt::format("how values change with `{}` differs from step to step", mine));
  if (!starts_well(r, carries, assumed))
    return not_so(fmt::format("something relative to `{}` does not start at 0", mine));
  if (!find_scale(loop, r, weights, why)) return false;
  // Behind the loop there is one reference.
  Weights end(pool_);
  end.set(r.carry.name, {reference_weight(false), 0});
  for (const auto& [name, w] : assumed) {
    end.set(name, w);
    for (const Carry& c : carries)
      r.has_wide_accumulator |= c.name == name && w.weight.is_weighted() && c.type.dims.size() > 1;
  }
  return follow(after, end, nullptr) ||
         not_so(fmt::format("a result behind the loop changes with `{}`", mine));
}

// From -inf (of a minimum: from inf) the factor is 0 and not 1, which makes no difference to
// accumulators that are 0.
bool References::starts_well(const Reference& r, const std::vector<Carry>& carries,
                             const std::unordered_map<Name, TileWeight>& weights) const {
  const Expr at[] = {pool_.index(r.next.axes[0].name)};
  const Expr first = pool_.read(r.carry.init, r.carry.type.dtype, at);
  const bool rises = r.next.value.op() == EK::Max;
  if (rises ? finite_.is_above(first) : finite_.is_finite(first)) return true;
  // Where the first reference is infinite, and with it the tile that it was made from.
  const double end = std::numeric_limits<double>::infinity();
  const Expr infinity = pool_.floating(rises ? -end : end, r.carry.type.dtype);
  Fills fills = {{r.carry.init, infinity}};
  const auto made = definitions_.find(r.carry.init);
  if (made != definitions_.end() && made->second.is<Set>() &&
      made->second.as<Set>().value.op() == EK::Read)
    fills.emplace(made->second.as<Set>().value.name(), infinity);
  return std::all_of(carries.begin(), carries.end(), [&](const Carry& c) {
    if (!weights.at(c.name).weight.is_weighted()) return true;
    const auto it = definitions_.find(c.init);
    if (it == definitions_.end() || !it->second.is<Set>()) return false;
    const Expr start = value_with_fills(program_, it->second.as<Set>().value, fills, pool_);
    return start && start.op() == EK::FloatConst && start.number() == 0;
  });
}

// The factor exp2((old - new) * scale). Only where it is at most 1 is the growth of a reference
// that was not followed a growth of the weights, which a limit can be set to: above a maximum with
// a positive scale, below a minimum with a negative one.
bool References::find_scale(const For& loop, Reference& r, const Weights& weights,
                            std::string* why) const {
  for (const Op& op : loop.body) {
    const auto* s = op.get<Set>();
    if (!s || s->axes.size() != 1) continue;
    const TileWeight w = weights.of(s->name);
    if (w.weight.kind != Weight::Kind::Scaled || w.weight.old.is_zero() ||
        !(w.weight.old + w.weight.now).is_zero())
      continue;
    r.scale = w.weight.old.expression(pool_, r.carry.type.dtype);
    if (!r.scale) break;
    const bool rises = r.next.value.op() == EK::Max;
    const Expr growth =
        rises ? r.scale : w.weight.old.times(-1).expression(pool_, r.carry.type.dtype);
    if (is_positive(program_, growth)) return true;
    *why = fmt::format("what is relative to `{}` is not known to shrink when it moves",
                       r.carry.name.str());
    return false;
  }
  *why = fmt::format("nothing is rescaled when `{}` moves", r.carry.name.str());
  return false;
}

bool References::is_factor(const Set& s, const Reference& r) const {
  if (s.axes.size() != 1 || (s.value.op() != EK::Exp2 && s.value.op() != EK::Exp)) return false;
  const Expr at[] = {pool_.index(s.axes[0].name)};
  const Expr old = pool_.read(r.carry.name, r.carry.type.dtype, at);
  const Expr now = pool_.read(r.next.name, r.carry.type.dtype, at);
  // The exponent of a reference that stays, guards of one that is not there yet left aside.
  const Expr still = expr::rebuild(pool_, s.value[0], [&](Expr x) {
    if (x.op() == EK::Select && x[0].op() == EK::Eq && x[0][0] == old && is_infinity(x[0][1]) &&
        x[2] == old)
      return old;
    return x == now ? old : x;
  });
  return still != s.value[0] && is_zero(still);
}

}  // namespace nautilus::vrtile
