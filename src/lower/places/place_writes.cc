// SPDX-License-Identifier: Apache-2.0
#include "lower/places/place_writes.h"

#include "expr/scalar_ops.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

class PlaceWriter {
 public:
  PlaceWriter(const PointsContext& points, const SortNests& nests, expr::ExprPool& pool)
      : points_(points),
        nests_(nests),
        pool_(pool),
        count_(nests.order.axis.extent),
        places_(places_asked(nests, points.kept, pool)) {}

  ir::Block run() {
    for (const PlaceChoice& c : nests_.choices) write(guard(c), choose(c));
    if (keeps_counts(nests_, points_.kept)) write(guard(count_), kept_count());
    return std::move(out_);
  }

 private:
  DType dtype(ir::Name tensor) const { return points_.buffers.at(std::string(tensor.str())).dtype; }

  // Whether a place is one of the choice's; null: all are.
  Expr guard(const PlaceChoice& c) {
    return c.place ? pool_.binary(EK::Eq, nests_.place, c.place) : guard(c.places);
  }
  Expr guard(Expr limit) {
    return limit == places_ ? Expr() : pool_.binary(EK::Lt, nests_.place, limit);
  }

  // What one term makes of what the reduction begins with, where there is an element to choose.
  ir::Op choose(const PlaceChoice& c) {
    const DType stored = dtype(c.target);
    const DType wide = expr::compute_dtype(stored);
    const Expr first = pool_.cast(wide, c.first);
    const Expr chosen = pool_.binary(expr::combiner(c.reducer), first, pool_.cast(wide, c.value));
    Expr is_chosen = c.condition;
    if (c.places != count_) {
      const Expr exists = pool_.binary(EK::Lt, nests_.place, count_);
      is_chosen = is_chosen ? pool_.binary(EK::And, exists, is_chosen) : exists;
    }
    const Expr value = is_chosen ? pool_.select(is_chosen, chosen, first) : chosen;
    return ir::make(matile::Write{c.target, c.indices, pool_.cast(stored, value)});
  }

  // Nothing is counted for elements without a place.
  ir::Op kept_count() {
    const DType stored = dtype(nests_.counts);
    const Expr place = pool_.cast(stored, nests_.place);
    const Expr condition = has_place(nests_, pool_);
    ir::Exprs indices;
    for (const ir::Axis& a : points_.nests[0].axes) indices.push_back(pool_.index(a.name));
    return ir::make(matile::Write{
        nests_.counts, indices,
        condition ? pool_.select(condition, place, pool_.constant(0, stored)) : place});
  }

  // Neighbours under the same condition share it.
  void write(Expr condition, ir::Op op) {
    if (!condition) return out_.push_back(std::move(op));
    if (!out_.empty() && out_.back().is<matile::If>() &&
        out_.back().as<matile::If>().condition == condition) {
      auto both = out_.back().as<matile::If>();
      both.body.push_back(std::move(op));
      out_.back() = ir::make(std::move(both));
      return;
    }
    out_.push_back(ir::make(matile::If{condition, {std::move(op)}}));
  }

  const PointsContext& points_;
  const SortNests& nests_;
  expr::ExprPool& pool_;
  Expr count_;
  Expr places_;
  ir::Block out_;
};

}  // namespace

bool keeps_counts(const SortNests& nests, const std::set<std::string>& kept) {
  return kept.contains(std::string(nests.counts.str()));
}

Expr places_asked(const SortNests& nests, const std::set<std::string>& kept, expr::ExprPool& pool) {
  Expr out;
  const auto add = [&](Expr n) { out = !out || out == n ? n : pool.binary(EK::Max, out, n); };
  for (const PlaceChoice& c : nests.choices)
    add(c.places ? c.places : pool.binary(EK::Add, c.place, pool.integer(1)));
  if (keeps_counts(nests, kept)) add(nests.order.axis.extent);
  return out;
}

Expr has_place(const SortNests& nests, expr::ExprPool& pool) {
  Expr out;
  for (Expr c : nests.order.has_place) out = out ? pool.binary(EK::And, out, c) : c;
  return out;
}

ir::Block place_writes(const PointsContext& points, const SortNests& nests, expr::ExprPool& pool) {
  return PlaceWriter(points, nests, pool).run();
}

}  // namespace nautilus::lower
