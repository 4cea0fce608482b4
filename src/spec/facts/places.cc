// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/places.h"

#include <algorithm>
#include <optional>

#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using PlaceOp = expr::Op;

class Places {
 public:
  Places(const ir::Axes& axes, const expr::Facts& facts, const ir::UsualSizes& sizes,
         expr::ExprPool& pool)
      : axes_(axes), facts_(facts), sizes_(sizes), pool_(pool) {}

  std::vector<Place> of(ir::Expr e) {
    visit(e);
    // Two places with an axis in common are not independent: the axis itself is the place.
    while (const auto shared = overlapping()) {
      const ir::Expr whole = found_[*shared].index;
      found_.erase(found_.begin() + static_cast<std::ptrdiff_t>(*shared));
      for (const ir::Axis& a : axes_) {
        if (expr::depends_on(whole, pool_.index(a.name))) add(axis_place(a));
      }
    }
    std::stable_sort(found_.begin(), found_.end(), [&](const Place& a, const Place& b) {
      return last_axis(a.index) < last_axis(b.index);
    });
    return std::move(found_);
  }

 private:
  void visit(ir::Expr e) {
    if (last_axis(e) == 0 ||
        std::ranges::any_of(found_, [&](const Place& p) { return p.index == e; }))
      return;
    if (e.op() == PlaceOp::Var) return add(axis_place(axes_[last_axis(e) - 1]));
    if (e.dtype() == expr::DType::I64 && expr::tensors_read(e).empty()) {
      if (const auto place = range_of(e)) return add(*place);
    }
    for (ir::Expr a : e.args()) visit(a);
  }

  Place axis_place(const ir::Axis& a) const {
    return {pool_.index(a.name), pool_.integer(0), a.extent};
  }

  void add(const Place& place) {
    if (std::ranges::none_of(found_, [&](const Place& p) { return p.index == place.index; }))
      found_.push_back(place);
  }

  // Nothing if it has no known bounds, or not fewer values than its axes have together.
  std::optional<Place> range_of(ir::Expr index) const {
    const auto value = expr::Poly::of(index);
    const auto low = value ? facts_.lower(*value) : std::nullopt;
    const auto high = value ? facts_.upper(*value) : std::nullopt;
    const auto width = low && high ? expr::add(*high, *low, -1) : std::nullopt;
    const auto count = width ? expr::plus(*width, 1) : std::nullopt;
    if (!count) return std::nullopt;
    const ir::Expr extent = expr::to_expr(pool_, *count);
    double all = 1;
    for (const ir::Axis& a : axes_) {
      if (expr::depends_on(index, pool_.index(a.name))) all *= sizes_.extent(a.extent);
    }
    if (sizes_.extent(extent) >= all) return std::nullopt;
    return Place{index, expr::to_expr(pool_, *low), extent};
  }

  // A place of several that have an axis in common, and that is no axis.
  std::optional<size_t> overlapping() const {
    for (size_t k = 0; k < found_.size(); ++k) {
      if (found_[k].index.op() == PlaceOp::Var) continue;
      for (size_t n = 0; n < found_.size(); ++n) {
        if (n != k && has_common_axis(found_[k].index, found_[n].index)) return k;
      }
    }
    return std::nullopt;
  }

  bool has_common_axis(ir::Expr a, ir::Expr b) const {
    return std::ranges::any_of(axes_, [&](const ir::Axis& axis) {
      const ir::Expr var = pool_.index(axis.name);
      return expr::depends_on(a, var) && expr::depends_on(b, var);
    });
  }

  // Counted from 1; 0: there is none.
  size_t last_axis(ir::Expr e) const {
    for (size_t k = axes_.size(); k > 0; --k) {
      if (expr::depends_on(e, pool_.index(axes_[k - 1].name))) return k;
    }
    return 0;
  }

  const ir::Axes& axes_;
  const expr::Facts& facts_;
  const ir::UsualSizes& sizes_;
  expr::ExprPool& pool_;
  std::vector<Place> found_;
};

}  // namespace

std::vector<Place> places_of(ir::Expr e, const ir::Axes& axes, const expr::Facts& facts,
                             const ir::UsualSizes& sizes, expr::ExprPool& pool) {
  return Places(axes, facts, sizes, pool).of(e);
}

}  // namespace nautilus::spec
