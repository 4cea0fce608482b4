// SPDX-License-Identifier: Apache-2.0
// Loops and branches: what may stay in flight from one iteration to the next.
#include <fmt/format.h>

#include <algorithm>

#include "expr/rules/simplify.h"
#include "ir/walk.h"
#include "matile/passes/waits/wait_placer.h"

namespace nautilus::matile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

void WaitPlacer::region(const Op& op, ir::Block& out, bool is_loop) {
  wait_before(out);
  const auto held = held_;
  ir::Block body = walk(*block_of(op), is_loop);
  for (const auto& [ring, slots] : held_) {
    const auto it = held.find(ring);
    if (slots.size() != (it == held.end() ? 0 : it->second.size()))
      refuse(fmt::format("a slot of `{}` would be held over the end of a block", ring));
  }
  out.push_back(with_block(op, std::move(body)));
  release(out);
}

bool WaitPlacer::is_product_loop(const Loop& loop) {
  bool has_dot = false;
  for (const Op& op : loop.body) {
    has_dot |= op.is<Dot>();
    if (!op.is<Dot>() && !op.is<Get>() && !op.is<Let>()) return false;
  }
  return has_dot;
}

// `set acc[...] = 0.0` at the end of what was written; removed if the accumulator is not touched
// after it.
bool WaitPlacer::take_zero(ir::Name acc, ir::Block& out) {
  for (size_t k = out.size(); k-- > 0;) {
    if (!touched_by(out[k]).mentions(acc.str())) continue;
    const auto* set = out[k].get<Set>();
    const Expr value = set ? set->value : Expr();
    const bool is_zero =
        set && (value.is_int(0) || (value.op() == EK::FloatConst && value.number() == 0));
    if (!is_zero) return false;
    out.erase(out.begin() + static_cast<long>(k));
    return true;
  }
  return false;
}

// All operands come from slots of this loop's own rings, of which two can be held.
bool WaitPlacer::can_lag(const Loop& loop) {
  Names got;
  Names accumulators;
  for (const Op& op : loop.body) {
    if (const auto* d = op.get<Dot>()) accumulators.emplace(d->acc.str());
    if (const auto* g = op.get<Get>()) {
      if (!got.emplace(g->ring.str()).second || slots_.at(std::string(g->ring.str())) < 2)
        return false;
    }
  }
  // Products into one accumulator follow each other; another one between them breaks the chain.
  if (accumulators.size() != 1) return false;
  const bool is_up = loop.direction == Direction::Up;
  const bool runs =
      is_up ? scalars_.is_at_least(loop.to, pool_.binary(EK::Add, loop.from, pool_.integer(1)))
            : scalars_.is_at_least(loop.from, loop.to);
  if (!runs) return false;
  const auto* asked = in_flight_.asked();
  const int64_t products = asked ? asked->products.value_or(-1) : 1;
  if (products < 0 || products > 1) in_flight_.refuse("0 or 1 products are under way");
  in_flight_.took({products, {}});
  return products == 1;
}

void WaitPlacer::product_loop(const Op& op, ir::Block& out) {
  const auto& loop = op.as<Loop>();
  wait_before(out);
  if (!can_lag(loop)) return region(op, out, true);
  expr::Simplifier simplifier(pool_);
  const expr::Substitution first{{pool_.index(loop.var), loop.from}};
  Names initialised;
  for (const Op& inner : loop.body) {
    if (inner.is<Let>()) return region(op, out, true);
    Op peeled = ir::map_exprs(inner, [&](Expr e) {
      const Expr at = expr::substitute(pool_, e, first);
      return at == e ? e : simplifier.simplify(at);
    });
    if (const auto* d = peeled.get<Dot>(); d && d->mode == DotMode::Add &&
                                           !initialised.contains(d->acc.str()) &&
                                           take_zero(d->acc, out)) {
      Dot init = *d;
      init.mode = DotMode::Init;
      initialised.emplace(d->acc.str());
      peeled = ir::make(std::move(init), op.span());
    }
    visit(peeled, out);
  }
  const auto in_flight = static_cast<int64_t>(pending_.size());
  Loop rest = loop;
  const int64_t one = loop.direction == Direction::Up ? 1 : -1;
  rest.from = simplifier.simplify(pool_.binary(EK::Add, loop.from, pool_.integer(one)));
  rest.body.push_back(ir::make(Wait{in_flight, {}}));
  for (const Op& inner : loop.body) {
    if (const auto* g = inner.get<Get>()) rest.body.push_back(ir::make(Release{g->ring}));
  }
  out.push_back(ir::make(std::move(rest), op.span()));
}

// One product of an operand that the loop computes in registers, and nothing that reads the sum:
// the product of a step runs while the operand of the next is computed.
bool WaitPlacer::is_computed_loop(const Loop& loop) {
  const Dot* product = nullptr;
  for (const Op& op : loop.body) {
    if (!op.is<Get>() && !op.is<Take>() && !op.is<Set>() && !op.is<Fold>() && !op.is<Dot>())
      return false;
    if (op.is<Dot>() && product) return false;
    if (const auto* d = op.get<Dot>()) product = d;
  }
  if (!product || product->mode != DotMode::Add || ring_of_.contains(product->a.str()) ||
      !can_lag(loop))
    return false;
  bool gets = false;
  for (const Op& op : loop.body) {
    const auto* g = op.get<Get>();
    gets |= g && is_slot_tile_of(product->b, std::string(g->ring.str()));
    if (!op.is<Dot>() && touched_by(op).mentions(product->acc.str())) return false;
  }
  return gets && loop.body.back().is<Dot>();
}

void WaitPlacer::computed_loop(const Op& op, ir::Block& out) {
  const auto& loop = op.as<Loop>();
  wait_before(out);
  expr::Simplifier simplifier(pool_);
  const expr::Substitution first{{pool_.index(loop.var), loop.from}};
  ir::Block peeled;
  for (const Op& inner : loop.body) {
    peeled.push_back(ir::map_exprs(inner, [&](Expr e) {
      const Expr at = expr::substitute(pool_, e, first);
      return at == e ? e : simplifier.simplify(at);
    }));
  }
  if (const auto& d = peeled.back().as<Dot>(); take_zero(d.acc, out)) {
    Dot init = d;
    init.mode = DotMode::Init;
    peeled.back() = ir::make(std::move(init), op.span());
  }
  visit_all(peeled, false, out);
  const auto held = held_;
  Loop rest = loop;
  rest.body.clear();
  const int64_t one = loop.direction == Direction::Up ? 1 : -1;
  rest.from = simplifier.simplify(pool_.binary(EK::Add, loop.from, pool_.integer(one)));
  visit_all(loop.body, true, rest.body);
  for (const auto& [ring, slots] : held_) {
    const auto it = held.find(ring);
    if (slots.size() != (it == held.end() ? 0 : it->second.size()))
      refuse(fmt::format("a slot of `{}` would be held over the end of a block", ring));
  }
  out.push_back(ir::make(std::move(rest), op.span()));
}

}  // namespace nautilus::matile
