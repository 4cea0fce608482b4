// SPDX-License-Identifier: Apache-2.0
#include "lower/places/sort_nests.h"

#include <algorithm>
#include <unordered_set>

#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/points/nest_reduction.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

// A nest that reduces over one axis.
std::optional<NestReduction> reduction_along(const MapNest& nest) {
  const auto out = reduction_of(nest);
  return out && out->loop->axes.size() == 1 && !expr::is_arg(out->update->reducer) ? out
                                                                                   : std::nullopt;
}

class SortReader {
 public:
  SortReader(FreshNames names, const target::Target& target, expr::ExprPool& pool)
      : names_(std::move(names)), target_(target), pool_(pool) {}

  std::optional<SortNests> run(std::span<const MapNest> nests) {
    if (!read_count(nests[0])) return std::nullopt;
    for (out_.count = 1; out_.count < nests.size(); ++out_.count) {
      auto choice = read_choice(nests[out_.count]);
      if (!choice) break;
      chosen_.insert(choice->target);
      out_.choices.push_back(std::move(*choice));
    }
    return std::move(out_);
  }

 private:
  Expr index(const ir::Axis& a) { return pool_.index(a.name); }

  bool read_count(const MapNest& nest) {
    const auto r = reduction_along(nest);
    const bool is_count = r && r->update->reducer == expr::Reducer::Sum &&
                          r->init->value.op() == EK::IntConst && r->init->value.integer() == 0;
    if (!is_count) return false;
    const auto order = algebra::read_total_order(
        {nest.axes, r->update->value, index(r->loop->axes[0]), r->loop->axes[0].extent}, pool_);
    if (!order) return false;
    out_.order = *order;
    out_.counts = r->init->target;
    for (const ir::Axis& a : nest.axes) {
      if (a.name != order->axis.name) out_.rows.push_back(a);
    }
    // The count is stored by these axes.
    for (size_t k = 0; k < nest.axes.size(); ++k) {
      if (r->init->indices.size() != nest.axes.size() || r->init->indices[k] != index(nest.axes[k]))
        return false;
    }
    axes_ = nest.axes;
    place_ = names_.make("place");
    out_.place = pool_.index(place_);
    return true;
  }

  // The axes of a choice by those of the count: its row is what it reads the count at.
  bool bind_row(Expr read, const ir::Axis& reduced, expr::Substitution& own, ir::Axes& left) {
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (axes_[k].name == out_.order.axis.name) {
        if (read[k] != index(reduced) || axes_[k].extent != reduced.extent) return false;
        own[read[k]] = out_.order.index;
        continue;
      }
      const auto at = std::find_if(left.begin(), left.end(), [&](const ir::Axis& a) {
        return index(a) == read[k] && a.extent == axes_[k].extent;
      });
      if (at == left.end()) return false;
      own[read[k]] = index(axes_[k]);
      left.erase(at);
    }
    return true;
  }

  bool reads_counts(Expr e) const {
    const auto all = expr::tensors_read(e);
    return std::find(all.begin(), all.end(), out_.counts) != all.end();
  }

  // The count in an equation that asks for a place.
  Expr read_in(Expr side) const {
    const Expr read = algebra::counted_places(side);
    return read && read.name() == out_.counts ? read : Expr();
  }

  // Whether a nest reads what another choice writes: at other places than its own, that is not
  // there yet.
  bool reads_choices(const NestReduction& r) const {
    const auto reads = [&](Expr e) {
      const auto all = expr::tensors_read(e);
      return std::any_of(all.begin(), all.end(), [&](ir::Name n) { return chosen_.contains(n); });
    };
    return reads(r.init->value) || reads(r.update->value) ||
           std::ranges::any_of(r.init->indices, reads);
  }

  std::optional<PlaceChoice> read_choice(const MapNest& nest) {
    const auto r = reduction_along(nest);
    if (!r || r->update->value.op() != EK::Select || reads_counts(r->init->value) ||
        reads_choices(*r))
      return std::nullopt;
    const Expr term = r->update->value;
    if (!expr::changes_nothing(term[2], r->update->reducer, r->init->value) ||
        reads_counts(term[1]))
      return std::nullopt;
    Expr read;
    Expr asked;
    std::vector<Expr> others;
    for (Expr c : expr::conjuncts(term[0])) {
      if (!reads_counts(c)) {
        others.push_back(c);
        continue;
      }
      if (read || c.op() != EK::Eq) return std::nullopt;
      for (const size_t side : {size_t{0}, size_t{1}}) {
        if (const Expr found = read_in(c[side])) {
          read = found;
          asked = c[1 - side];
        }
      }
      if (!read || !expr::is_int(asked.dtype()) || reads_counts(asked) ||
          expr::depends_on(asked, index(r->loop->axes[0])))
        return std::nullopt;
      // What is asked under a condition on the row may not be there to be read.
      const auto is_of_row = [&](Expr o) { return !expr::depends_on(o, index(r->loop->axes[0])); };
      if (!expr::tensors_read(asked).empty() && std::ranges::any_of(others, is_of_row))
        return std::nullopt;
    }
    expr::Substitution own;
    ir::Axes left = nest.axes;
    if (!read || !bind_row(read, r->loop->axes[0], own, left)) return std::nullopt;
    PlaceChoice out{r->init->target, {}, r->update->reducer, {}, {}, {}, {}, {}};
    if (!find_place(asked, left, own, out)) return std::nullopt;
    const auto here = [&](Expr e) { return expr::substitute(pool_, e, own); };
    std::vector<Expr> known;
    for (Expr c : others) known.push_back(here(c));
    for (Expr c : out_.order.has_place) {
      if (!algebra::follows(c, known, pool_)) return std::nullopt;
    }
    for (Expr c : known) out.condition = out.condition ? both(out.condition, c) : c;
    if (is_above_zero_)
      out.condition = out.condition ? both(is_above_zero_, out.condition) : is_above_zero_;
    out.first = here(r->init->value);
    out.value = here(term[1]);
    for (Expr i : r->init->indices) out.indices.push_back(here(i));
    return out;
  }

  // All places of an axis that is left, or one place; its elements may be of the row's axes alone.
  bool find_place(Expr asked, const ir::Axes& left, expr::Substitution& own, PlaceChoice& out) {
    is_above_zero_ = {};
    const bool is_axis = left.size() == 1 && asked == index(left[0]);
    if (!is_axis && !left.empty()) return false;
    if (is_axis) {
      own[asked] = out_.place;
      out.places = left[0].extent;
      return !depends_on_rows(left[0].extent);
    }
    const Expr place = expr::substitute(pool_, pool_.cast(DType::I64, asked), own);
    out.place = place;
    if (place.op() == EK::IntConst && place.integer() >= 0 &&
        place.integer() < target_.points.few_places)
      return true;
    is_above_zero_ = pool_.binary(EK::Ge, place, pool_.integer(0));
    // Places behind the row have no element; the first of them stands for all.
    out.place = pool_.binary(EK::Min, pool_.binary(EK::Max, place, pool_.integer(0)),
                             out_.order.axis.extent);
    return true;
  }

  bool depends_on_rows(Expr e) {
    return std::any_of(axes_.begin(), axes_.end(),
                       [&](const ir::Axis& a) { return expr::depends_on(e, index(a)); });
  }

  Expr both(Expr a, Expr b) { return pool_.binary(EK::And, a, b); }

  FreshNames names_;
  const target::Target& target_;
  expr::ExprPool& pool_;
  SortNests out_;
  ir::Axes axes_;  // of the count
  ir::Name place_;
  std::unordered_set<ir::Name> chosen_;  // results of the choices so far
  Expr is_above_zero_;  // a condition on the place of the choice being read; null if it holds
};

}  // namespace

std::optional<SortNests> sort_nests(std::span<const MapNest> nests, FreshNames names,
                                    const target::Target& target, expr::ExprPool& pool) {
  return SortReader(std::move(names), target, pool).run(nests);
}

}  // namespace nautilus::lower
