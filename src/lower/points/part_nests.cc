// SPDX-License-Identifier: Apache-2.0
#include "lower/points/part_nests.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using ir::Op;

bool has_reduction(const MapNest& nest) {
  return std::any_of(nest.body.begin(), nest.body.end(),
                     [](const Op& op) { return op.is<scalar::For>(); });
}

class Joining {
 public:
  Joining(const std::unordered_set<Expr>& computed, expr::ExprPool& pool)
      : computed_(computed), pool_(pool) {}

  void add(const MapNest& nest) {
    if (nest.axes.size() > axes_.size()) axes_ = nest.axes;
    is_cheap_ &= is_over_parts(nest, computed_) || !has_reduction(nest);
    const auto own = to_common(nest);
    ir::for_each_op(nest.body, [&](const Op& op) {
      if (const auto* s = op.get<scalar::Store>()) write(s->target, s->indices, own);
      if (const auto* i = op.get<scalar::Init>()) write(i->target, i->indices, own);
    });
  }

  // The axes of one are the first axes of the other; what it reads of the others is at its point.
  // `is_apart`: it may read nothing of them.
  bool takes(const MapNest& next, bool is_apart) {
    const size_t shared = std::min(axes_.size(), next.axes.size());
    for (size_t k = 0; k < shared; ++k) {
      if (axes_[k].extent != next.axes[k].extent) return false;
    }
    const bool is_plain = is_over_parts(next, computed_) || !has_reduction(next);
    if (next.axes.size() < axes_.size() ? !is_plain : next.axes.size() > axes_.size() && !is_cheap_)
      return false;
    const auto own = to_common(next);
    bool ok = true;
    bool reads = is_apart;
    ir::for_each_op(next.body, [&](const Op& op) {
      ok &= op.is<scalar::For>() || op.is<scalar::Store>() || op.is<scalar::Init>() ||
            op.is<scalar::Update>();
    });
    for (const Op& op : next.body) {
      ir::for_each_expr(op, [&](Expr root) {
        expr::for_each(root, [&](Expr e) {
          const auto it = e.op() == expr::Op::Read ? written_.find(std::string(e.name().str()))
                                                   : written_.end();
          if (it == written_.end()) return;
          reads = true;
          ok &= e.args().size() == it->second.size();
          for (size_t k = 0; ok && k < it->second.size(); ++k)
            ok = expr::substitute(pool_, e[k], own) == it->second[k];
        });
      });
    }
    return ok && reads;
  }

 private:
  // A name for the k-th axis that no program has.
  expr::Substitution to_common(const MapNest& nest) {
    expr::Substitution map;
    for (size_t k = 0; k < nest.axes.size(); ++k)
      map.emplace(pool_.index(nest.axes[k].name), pool_.index("#" + std::to_string(k)));
    return map;
  }

  void write(ir::Name target, const ir::Exprs& indices, const expr::Substitution& own) {
    std::vector<Expr> at;
    for (Expr i : indices) at.push_back(expr::substitute(pool_, i, own));
    written_.insert_or_assign(std::string(target.str()), std::move(at));
  }

  const std::unordered_set<Expr>& computed_;
  expr::ExprPool& pool_;
  ir::Axes axes_;
  bool is_cheap_ = true;  // may be computed again for every point of more axes
  std::map<std::string, std::vector<Expr>> written_;
};

}  // namespace

bool is_over_parts(const MapNest& nest, const std::unordered_set<Expr>& computed) {
  bool found = false;
  bool ok = true;
  for (const Op& op : nest.body) {
    const auto* f = op.get<scalar::For>();
    if (!f) continue;
    found = true;
    ok &= f->kind == scalar::LoopKind::Reduce &&
          std::all_of(f->axes.begin(), f->axes.end(),
                      [&](const ir::Axis& a) { return computed.contains(a.extent); });
  }
  return found && ok;
}

size_t part_nests_end(const std::vector<MapNest>& nests, size_t begin,
                      const std::unordered_set<Expr>& computed, expr::ExprPool& pool,
                      size_t least) {
  Joining joining(computed, pool);
  joining.add(nests[begin]);
  size_t end = begin + 1;
  for (; end < nests.size() && joining.takes(nests[end], end < least); ++end)
    joining.add(nests[end]);
  return end;
}

LastTileNests last_tile_nests(const std::vector<MapNest>& nests, size_t grid,
                              const std::set<std::string>& locals,
                              const std::unordered_set<Expr>& computed, expr::ExprPool& pool) {
  std::set<std::string> parts = written_by(nests[grid]);
  std::erase_if(parts, [&](const std::string& n) { return locals.contains(n); });
  LastTileNests out{grid, grid + 1};
  for (size_t k = grid + 1; k < nests.size(); ++k) {
    for (const Op& op : nests[k].body) {
      ir::for_each_expr(op, [&](Expr e) {
        for (ir::Name t : expr::tensors_read(e)) {
          if (parts.contains(std::string(t.str()))) out.least = k + 1;
        }
      });
    }
  }
  if (out.end < nests.size() && is_over_parts(nests[out.end], computed))
    out.end = part_nests_end(nests, out.end, computed, pool, out.least);
  return out;
}

}  // namespace nautilus::lower
