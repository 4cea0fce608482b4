// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/branches/reference_powers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/rewrite.h"
#include "vrtile/ops.h"

namespace nautilus::matile {

using ir::Op;
using vrtile::Weight;

namespace {

// Powers of two that are left to products with other operands, and to sums of many.
constexpr double kPowers = 60;
constexpr double kPowersOfHalf = 15;  // f16 ends at 2^16

double powers_of(ir::DType dtype) { return dtype == ir::DType::F16 ? kPowersOfHalf : kPowers; }

// k with a = k * b, among the values for powers and roots of a weight; 0 for other ratios.
double quotient(const vrtile::Coefficient& a, const vrtile::Coefficient& b) {
  for (double k : {1.0, 2.0, 0.5, 3.0, 4.0, 1.5, 0.25, 6.0, 8.0}) {
    if (a == b.times(k)) return k;
    if (a == b.times(-k)) return -k;
  }
  return 0;
}

bool reads_any(ir::Expr e, const std::vector<ir::Name>& votes) {
  bool found = false;
  expr::for_each(e, [&](ir::Expr x) {
    found |=
        x.op() == expr::Op::Var && std::find(votes.begin(), votes.end(), x.name()) != votes.end();
  });
  return found;
}

}  // namespace

ReferencePowers::ReferencePowers(const Role& role, ir::Name reference, expr::ExprPool& pool)
    : reference_(reference), weights_(pool) {
  for (const auto& [name, tile] : declared_tiles(role)) dtypes_.emplace(name, tile.type.dtype);
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* vote = op.get<Vote>();
    if (vote && touched_by(op).reads.contains(reference.str())) votes_.push_back(vote->name);
  });
  Weight moved{.kind = Weight::Kind::Shifted};
  moved.old = vrtile::Coefficient::one();
  weights_.set(reference, {moved, 0});
  add(role.body);
}

bool ReferencePowers::is_branch(const Op& op) const {
  const auto* branch = op.get<If>();
  return branch && reads_any(branch->condition, votes_);
}

void ReferencePowers::add(const ir::Block& block) {
  for (const Op& op : block) {
    if (const auto* set = op.get<Set>()) {
      add_value(set->target, set->axes, set->value);
    } else if (const auto* fold = op.get<Fold>()) {
      add_value(fold->target, fold->axes, fold->value);
    } else if (const auto* convert = op.get<Convert>()) {
      weights_.set(convert->target, weights_.of(convert->source));
    } else if (const auto* dot = op.get<Dot>()) {
      const vrtile::TileWeight a = weights_.of(dot->a);
      if (dot->mode == DotMode::Init || a.weight.is_weighted()) weights_.set(dot->acc, a);
    } else if (const auto* take = op.get<Take>()) {
      weights_.set(take->tile, {});
    } else if (const auto* load = op.get<Load>()) {
      weights_.set(load->target, {});
    } else if (const ir::Block* inner = block_of(op); inner && !is_branch(op)) {
      add(*inner);
    }
  }
}

void ReferencePowers::add_value(ir::Name target, const ir::Axes& axes, ir::Expr value) {
  if (target == reference_ || reads_any(value, votes_)) return;
  weights_.add(ir::make(vrtile::Set{target, axes, value}));
  const Weight w = weights_.of(target).weight;
  if (w.kind == Weight::Kind::Bad && why_.empty())
    why_ = fmt::format("how `{}` changes with `{}` is not known", target.str(), reference_.str());
  if (w.kind != Weight::Kind::Scaled) return;
  const std::string name(target.str());
  const Grown grown{w.old, dtypes_.contains(name) ? dtypes_.at(name) : value.dtype()};
  tiles_.insert_or_assign(name, grown);
  grown_.push_back(grown);
}

std::optional<double> ReferencePowers::range(ir::Name tile, ir::Expr lag) const {
  const auto it = tiles_.find(std::string(tile.str()));
  const Weight behind = weights_.of(lag);
  if (it == tiles_.end() || behind.kind != Weight::Kind::Shifted) return std::nullopt;
  const double own = quotient(it->second.power, behind.old);
  if (own <= 0) return std::nullopt;
  // In units of the lag; what shrinks has as many powers of two below 1 as what grows has above.
  double powers = kPowers;
  for (const Grown& g : grown_) {
    const double k = quotient(g.power, behind.old);
    if (k == 0 || (k < 0 && g.dtype == ir::DType::F16)) return std::nullopt;
    powers = std::min(powers, powers_of(g.dtype) / std::fabs(k));
  }
  return std::exp2(std::floor(powers * own));
}

}  // namespace nautilus::matile
