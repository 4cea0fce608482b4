// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_scaled_ops.h"

#include <fmt/format.h>

#include "expr/walk.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

ir::Name RowScaledOps::own(std::string_view stem) {
  const ir::Name name = scope_.add_tile(stem, DType::F32, false);
  scope_.moving.insert(name);
  scope_.own.insert(name);
  return name;
}

void RowScaledOps::set(ir::Name tile, Expr value, ir::Block& out) const {
  out.push_back(ir::make(matile::Set{tile, {}, value}));
}

void RowScaledOps::add_reference(const RowScaledSum::Extreme& m, ir::Block& out) {
  for (const Reference& r : references_) {
    if (r.read == m.read) return;
  }
  const std::string target(m.read.name().str());
  const auto symbol = [&](std::string_view when) {
    return pool_.var(pool_.name(fmt::format("{}.{}", target, when)), DType::F32);
  };
  const Reference r{m.read,           symbol("before"),
                    symbol("after"),  own(fmt::format("{}_own", target)),
                    accs_.at(target), m.identity()};
  set(r.now, pool_.constant(r.identity, DType::F32), out);
  references_.push_back(r);
}

std::vector<const RowScaledOps::Reference*> RowScaledOps::references_of(
    const RowScaledSum& sum) const {
  std::vector<const Reference*> out;
  for (const Reference& r : references_) {
    for (const RowScaledSum::Extreme& m : sum.extremes) {
      if (m.read == r.read) out.push_back(&r);
    }
  }
  return out;
}

Expr RowScaledOps::against_own(Expr e) const {
  expr::Substitution map;
  for (const Reference& r : references_) map.emplace(r.read, number(r.now));
  return expr::substitute(pool_, e, map);
}

Expr RowScaledOps::factor(const algebra::RunningPart& part, const std::vector<const Reference*>& of,
                          const std::vector<Expr>& to) const {
  std::vector<algebra::Moved> moved;
  expr::Substitution to_symbols;
  expr::Substitution to_tiles;
  for (size_t k = 0; k < of.size(); ++k) {
    moved.push_back({of[k]->read, of[k]->after, of[k]->identity});
    to_symbols.emplace(of[k]->read, of[k]->before);
    to_tiles.emplace(of[k]->before, number(of[k]->now));
    to_tiles.emplace(of[k]->after, to[k]);
  }
  const Expr repair = algebra::repair_factor(pool_, part, moved, {});
  const Expr rewritten = values_.rewrite(expr::substitute(pool_, repair, to_symbols));
  return expr::substitute(pool_, rewritten, to_tiles);
}

// 1 where no extreme moved, whatever it is: infinities have no difference.
Expr RowScaledOps::moving_factor(const RowScaledSum& sum) const {
  const auto references = references_of(sum);
  std::vector<Expr> to;
  Expr stays;
  for (const Reference* r : references) {
    to.push_back(number(r->acc));
    const Expr is_same = pool_.binary(EK::Eq, number(r->now), to.back());
    stays = stays ? pool_.binary(EK::And, stays, is_same) : is_same;
  }
  return pool_.select(stays, pool_.constant(1, DType::F32), factor(sum.moving, references, to));
}

// Where a thread has the row's extremes, its sum is what it is. A row without numbers has what the
// definition has: NaN if it subtracts -inf from itself.
Expr RowScaledOps::last_factor(const RowScaledSum& sum) const {
  const auto references = references_of(sum);
  std::vector<Expr> to;
  Expr stays;
  for (const Reference* r : references) {
    to.push_back(values_.rewrite(r->read));
    const Expr nothing = pool_.constant(r->identity, DType::F32);
    const Expr is_same = pool_.binary(EK::And, pool_.binary(EK::Ne, number(r->now), nothing),
                                      pool_.binary(EK::Eq, number(r->now), to.back()));
    stays = stays ? pool_.binary(EK::And, stays, is_same) : is_same;
  }
  return pool_.select(stays, pool_.constant(1, DType::F32), factor(sum.last, references, to));
}

Expr RowScaledOps::is_row_empty() const {
  std::vector<Expr> extents = {scope_.present()};
  for (const ir::Axis& a : scope_.group.outer) extents.push_back(a.extent);
  Expr out;
  for (const Expr n : extents) {
    if (n.op() == EK::IntConst && n.integer() > 0) continue;
    const Expr is_none = pool_.binary(EK::Eq, n, pool_.integer(0));
    out = out ? pool_.binary(EK::Or, out, is_none) : is_none;
  }
  return out;
}

void RowScaledOps::start(ir::Block& out) {
  for (const RowScaledSum& sum : segment_.scaled) {
    for (const RowScaledSum::Extreme& m : sum.extremes) add_reference(m, out);
    sums_.push_back(own(scope_.group.statements[sum.statement].target.str()));
    set(sums_.back(), pool_.constant(0, DType::F32), out);
    const Expr factor = moving_factor(sum);
    size_t k = 0;
    while (k < factors_.size() && factors_[k].value != factor) ++k;
    if (k == factors_.size()) factors_.push_back({factor, own("factor")});
    factor_of_.push_back(k);
  }
}

void RowScaledOps::move(ir::Block& out) {
  for (const Factor& f : factors_) set(f.tile, f.value, out);
  for (size_t k = 0; k < sums_.size(); ++k) {
    const Expr factor = number(factors_[factor_of_[k]].tile);
    set(sums_[k], pool_.binary(EK::Mul, number(sums_[k]), factor), out);
  }
  for (const Reference& r : references_) set(r.now, number(r.acc), out);
}

void RowScaledOps::fold(ir::Block& out) {
  for (size_t k = 0; k < sums_.size(); ++k) {
    RowStatement terms = scope_.group.statements[segment_.scaled[k].statement];
    terms.value = against_own(segment_.scaled[k].term);
    statements_.fold(terms, sums_[k], false, out);
  }
}

void RowScaledOps::settle(const RowScaledSum& sum, ir::Block& out) {
  const ir::Name tile = sums_[static_cast<size_t>(&sum - segment_.scaled.data())];
  const RowStatement& statement = scope_.group.statements[sum.statement];
  const Expr scaled = pool_.binary(EK::Mul, number(tile), last_factor(sum));
  // Without elements there is nothing to scale.
  const Expr is_empty = is_row_empty();
  set(tile, is_empty ? pool_.select(is_empty, number(tile), scaled) : scaled, out);
  statements_.finish(statement, tile, out);
  scope_.moving.erase(tile);
}

}  // namespace nautilus::lower
