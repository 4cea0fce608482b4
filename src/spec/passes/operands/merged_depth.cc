// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/merged_depth.h"

#include <algorithm>

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

std::optional<MergedDepth> merged_depth(Expr reduction, ir::Name name, const ir::Environment& hints,
                                        const target::Target& target, expr::ExprPool& pool) {
  const size_t count = reduction.axis_count();
  std::vector<int64_t> extents;
  int64_t points = 1;
  for (size_t k = 0; k < count; ++k) {
    if (!is_known(reduction.extent(k), hints)) return std::nullopt;
    extents.push_back(ir::evaluate_size(reduction.extent(k), hints));
    if (extents.back() < 1 || extents.back() >= target.matrix.depth) return std::nullopt;
    points *= extents.back();
  }
  if (count < 2 || points < target.matrix.depth / 2) return std::nullopt;
  // Of the sets of axes, the first and some of the last ones (those beside each other in memory, as
  // a rule), the one with the least work: steps of whole instructions, and copies that are as long
  // as the depth.
  double best = 0;
  size_t best_last = 0;
  int64_t depth = extents[0];
  for (size_t last = 1; last < count; ++last) {
    depth *= extents[count - last];
    const int64_t whole =
        (depth + target.matrix.depth - 1) / target.matrix.depth * target.matrix.depth;
    const double work = static_cast<double>(whole) *
                        (static_cast<double>(points / depth) + target.algebra.copied_steps);
    if (best_last != 0 && work >= best) continue;
    best = work;
    best_last = last;
  }
  MergedDepth out;
  const Expr q = pool.index(name);
  Expr extent;
  Expr rest = q;
  for (size_t k = count; k-- > 0;) {
    const ir::Axis axis{reduction.axis(k).name(), reduction.extent(k)};
    if (k != 0 && k < count - best_last) {
      out.steps.insert(out.steps.begin(), axis);
      continue;
    }
    out.merged.push_back(reduction.axis(k));
    out.at.emplace(reduction.axis(k), k == 0 ? rest : pool.binary(DepthOp::Mod, rest, axis.extent));
    if (k != 0) rest = pool.binary(DepthOp::FloorDiv, rest, axis.extent);
    extent = extent ? pool.binary(DepthOp::Mul, axis.extent, extent) : axis.extent;
  }
  out.axis = {name, extent};
  return out;
}

}  // namespace nautilus::spec
