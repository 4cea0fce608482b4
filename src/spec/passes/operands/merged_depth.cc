// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/merged_depth.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace nautilus::spec {
namespace {

using expr::Expr;
using DepthOp = expr::Op;

bool is_known(Expr extent, const ir::Environment& hints) {
  const auto vars = expr::free_vars(extent);
  return std::all_of(vars.begin(), vars.end(),
                     [&](Expr v) { return hints.sizes.contains(std::string(v.name().str())); });
}

}  // namespace

ir::Names usual_depth(Expr reduction, const ir::Environment& hints, int64_t reuse, size_t limbs,
                      const target::Target& target) {
  const size_t count = reduction.axis_count();
  std::vector<int64_t> extents;
  int64_t points = 1;
  for (size_t k = 0; k < count; ++k) {
    if (!is_known(reduction.extent(k), hints)) return {};
    extents.push_back(ir::evaluate_size(reduction.extent(k), hints));
    if (extents.back() < 1 || extents.back() >= target.matrix.depth) return {};
    points *= extents.back();
  }
  if (count < 2 || points < target.matrix.depth / 2) return {};
  // Among the sets of the first axis and some of the last ones (usually neighbours in memory), the
  // one with the least work: steps of whole instructions, and copies as long as the depth. The
  // worth of a copy depends on the number of results that use it; steps of few results take as long
  // as longer ones.
  const bool is_few = reuse < target.matrix.rows;
  const auto served = static_cast<double>(std::max<int64_t>(reuse, target.matrix.column_step));
  // The target speaks of three limbs and six products; n limbs have n (n + 1) / 2.
  const double products_of_limb = (static_cast<double>(limbs) + 1) / 2;
  const double copied_steps = target.algebra.copied_steps * 2 / products_of_limb *
                              std::max(1.0, static_cast<double>(target.matrix.rows) / served);
  double best = 0;
  std::optional<size_t> best_last;
  int64_t depth = extents[0];
  // The first axis alone is a dimension of the limbs if its extent is a size.
  const size_t fewest = reduction.extent(0).op() == DepthOp::IntConst || !is_few ? 1 : 0;
  for (size_t last = 0; last < count; ++last) {
    if (last > 0) depth *= extents[count - last];
    if (last < fewest) continue;
    const int64_t whole =
        (depth + target.matrix.depth - 1) / target.matrix.depth * target.matrix.depth;
    const int64_t step = is_few ? std::max<int64_t>(whole, 2 * target.matrix.depth) : whole;
    const double work = static_cast<double>(step) * static_cast<double>(points / depth) +
                        static_cast<double>(whole) * copied_steps;
    if (best_last && work >= best) continue;
    best = work;
    best_last = last;
  }
  ir::Names out;
  for (size_t k = 0; *best_last > 0 && k < count; ++k) {
    if (k == 0 || k >= count - *best_last) out.push_back(reduction.axis(k).name());
  }
  return out;
}

MergedDepth merged_depth(Expr reduction, const ir::Names& axes, ir::Name name,
                         expr::ExprPool& pool) {
  MergedDepth out;
  std::unordered_map<ir::Name, Expr> extents;
  for (size_t k = 0; k < reduction.axis_count(); ++k) {
    const ir::Axis axis{reduction.axis(k).name(), reduction.extent(k)};
    extents.emplace(axis.name, axis.extent);
    if (std::find(axes.begin(), axes.end(), axis.name) == axes.end()) out.steps.push_back(axis);
  }
  Expr extent;
  Expr rest = pool.index(name);
  for (size_t k = axes.size(); k-- > 0;) {
    const Expr axis = pool.index(axes[k]);
    const Expr own = extents.at(axes[k]);
    out.merged.push_back(axis);
    out.at.emplace(axis, k == 0 ? rest : pool.binary(DepthOp::Mod, rest, own));
    if (k != 0) rest = pool.binary(DepthOp::FloorDiv, rest, own);
    extent = extent ? pool.binary(DepthOp::Mul, own, extent) : own;
  }
  out.axis = {name, extent};
  return out;
}

}  // namespace nautilus::spec
