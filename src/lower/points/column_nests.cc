// SPDX-License-Identifier: Apache-2.0
#include "lower/points/column_nests.h"

#include <algorithm>
#include <map>

#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/nest_reduction.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

class Columns {
 public:
  Columns(std::span<const MapNest> nests, const std::set<std::string>& kept,
          const target::Points& limits, expr::ExprPool& pool)
      : nests_(nests), kept_(kept), limits_(limits), pool_(pool) {}

  std::optional<std::vector<MapNest>> run() {
    if (!find_axes()) return std::nullopt;
    bool has_elements = false;
    for (const MapNest& nest : nests_) {
      const bool is_element = nest.axes.size() == axes_.size() + 1;
      has_elements |= is_element && kept_.contains(*written_by(nest).begin());
      if (is_element ? !element(nest) : !number(nest)) return std::nullopt;
    }
    if (!has_elements) return std::nullopt;
    return std::move(out_);
  }

 private:
  // Points and the axis that is walked along are those of the first reduction.
  bool find_axes() {
    for (const MapNest& nest : nests_) {
      const auto* loop = nest.body.size() == 2 ? nest.body[1].get<scalar::For>() : nullptr;
      if (!loop || !nest.body[0].is<scalar::Init>()) continue;
      if (loop->axes.size() != 1 || loop->kind != scalar::LoopKind::Reduce || nest.axes.empty())
        return false;
      axes_ = nest.axes;
      walked_ = loop->axes[0];
      for (const ir::Axis& a : axes_) point_.push_back(pool_.index(a.name));
      return true;
    }
    return false;
  }

  static bool is_at(const ir::Exprs& indices, const ir::Axes& axes, expr::ExprPool& pool) {
    return std::equal(indices.begin(), indices.end(), axes.begin(), axes.end(),
                      [&](Expr i, const ir::Axis& a) { return i == pool.index(a.name); });
  }

  // A reduction along the walked axis, or a number of each point.
  bool number(const MapNest& nest) {
    if (nest.axes.size() != axes_.size()) return false;
    expr::Substitution names;
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (nest.axes[k].extent != axes_[k].extent) return false;
      names.emplace(pool_.index(nest.axes[k].name), point_[k]);
    }
    const auto* store = nest.body.size() == 1 ? nest.body[0].get<scalar::Store>() : nullptr;
    const auto [init, loop, update] = reduction_of(nest).value_or(NestReduction());
    MapNest out{axes_, {}};
    if (store && is_at(store->indices, nest.axes, pool_)) {
      const Expr value = rewritten(store->value, names);
      if (!value) return false;
      out.body = {ir::make(scalar::Store{store->target, point_, value})};
      numbers_.emplace(store->target.str());
    } else if (update && loop->axes.size() == 1 && loop->axes[0].extent == walked_.extent &&
               is_at(init->indices, nest.axes, pool_)) {
      names.emplace(pool_.index(loop->axes[0].name), pool_.index(walked_.name));
      const Expr first = rewritten(init->value, names);
      const Expr value = rewritten(update->value, names);
      if (!first || !value || !is_along(value)) return false;
      scalar::Update moved = *update;
      moved.indices = point_;
      moved.value = value;
      out.body = {ir::make(scalar::Init{init->target, point_, first}),
                  ir::make(scalar::For{{walked_}, scalar::LoopKind::Reduce, {ir::make(moved)}})};
      numbers_.emplace(init->target.str());
    } else {
      return false;
    }
    out_.push_back(std::move(out));
    return true;
  }

  // An element of each point and each step of the walk, wherever its axis stands among the others.
  bool element(const MapNest& nest) {
    const auto* store = nest.body.size() == 1 ? nest.body[0].get<scalar::Store>() : nullptr;
    if (!store || !is_at(store->indices, nest.axes, pool_)) return false;
    for (size_t at = 0; at + 1 < nest.axes.size(); ++at) {
      if (nest.axes[at].extent != walked_.extent) continue;
      expr::Substitution names = {{pool_.index(nest.axes[at].name), pool_.index(walked_.name)}};
      bool is_same = true;
      for (size_t k = 0; k < axes_.size(); ++k) {
        const ir::Axis& a = nest.axes[k < at ? k : k + 1];
        is_same &= a.extent == axes_[k].extent;
        names.emplace(pool_.index(a.name), point_[k]);
      }
      const Expr value = is_same ? rewritten(store->value, names) : Expr();
      if (!value) continue;
      const std::string target(store->target.str());
      ir::Exprs indices = point_;
      indices.insert(indices.begin() + static_cast<std::ptrdiff_t>(at), pool_.index(walked_.name));
      // Whoever reads it reads what is stored.
      elements_.emplace(target, std::pair(indices, value));
      if (kept_.contains(target)) {
        const scalar::Store moved{store->target, indices, value};
        out_.push_back(
            {axes_,
             {ir::make(scalar::For{{walked_}, scalar::LoopKind::Reduce, {ir::make(moved)}})}});
      }
      return true;
    }
    return false;
  }

  // In the axes of the points, elements computed where they are read; null if something is read at
  // another point.
  Expr rewritten(Expr e, const expr::Substitution& names) {
    const Expr renamed = expr::substitute(pool_, e, names);
    bool ok = true;
    const Expr out = expr::rebuild(pool_, renamed, [&](Expr x) {
      if (x.op() != EK::Read) return x;
      const std::string name(x.name().str());
      if (numbers_.contains(name))
        ok &= std::equal(x.args().begin(), x.args().end(), point_.begin(), point_.end());
      const auto it = elements_.find(name);
      if (it == elements_.end()) return x;
      ok &= std::equal(x.args().begin(), x.args().end(), it->second.first.begin(),
                       it->second.first.end());
      return it->second.second;
    });
    // Elements grow with every statement that is written into another.
    return ok && out.tree_size() <= limits_.column_nodes ? out : Expr();
  }

  // Whether neighbouring points read neighbours: something is read at all points and steps, with
  // the last axis of the points along memory.
  bool is_along(Expr value) const {
    bool found = false;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read || e.args().empty() || e.args().back() != point_.back()) return;
      const auto is_there = [&](Expr axis) {
        return std::any_of(e.args().begin(), e.args().end(),
                           [&](Expr i) { return expr::depends_on(i, axis); });
      };
      found |= is_there(pool_.index(walked_.name)) &&
               std::all_of(point_.begin(), point_.end(), is_there);
    });
    return found;
  }

  std::span<const MapNest> nests_;
  const std::set<std::string>& kept_;
  const target::Points& limits_;
  expr::ExprPool& pool_;
  ir::Axes axes_;
  ir::Exprs point_;
  ir::Axis walked_;
  std::set<std::string> numbers_;                               // that each point has
  std::map<std::string, std::pair<ir::Exprs, Expr>> elements_;  // where, and what
  std::vector<MapNest> out_;
};

}  // namespace

std::optional<std::vector<MapNest>> column_nests(std::span<const MapNest> nests,
                                                 const std::set<std::string>& kept,
                                                 const target::Points& limits,
                                                 expr::ExprPool& pool) {
  return Columns(nests, kept, limits, pool).run();
}

}  // namespace nautilus::lower
