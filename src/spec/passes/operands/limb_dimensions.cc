// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/limb_dimensions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "expr/bounds/affine.h"
#include "expr/bounds/quotient.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using DimensionOp = expr::Op;

// `group` in `group * C + depth`, where the depth has C terms and the dimension whole groups.
std::optional<LimbDimension> group_of(Expr index, Expr dim, const ir::Axis& depth,
                                      expr::ExprPool& pool) {
  const Expr axis = depth.name ? pool.index(depth.name) : Expr();
  if (!axis || index == axis || !expr::depends_on(index, axis)) return std::nullopt;
  const auto rest = expr::difference(index, axis);
  const Expr group =
      rest ? expr::exact_quotient(pool, expr::to_expr(pool, *rest), depth.extent) : Expr();
  const Expr count = expr::exact_quotient(pool, dim, depth.extent);
  if (!group || !count || expr::depends_on(group, axis)) return std::nullopt;
  return LimbDimension{{{}, count}, group};
}

// In front of the first dimension; as one with it where a box has no room for another one.
void put_groups(const LimbDimension& groups, const ir::Axis& depth, size_t most_axes,
                LimbDimensions& out, expr::ExprPool& pool) {
  const Expr axis = pool.index(depth.name);
  const auto first = std::find_if(out.parts.begin(), out.parts.end(),
                                  [&](const LimbDimension& p) { return p.at != axis; });
  if (out.parts.size() < most_axes || first == out.parts.end()) {
    out.parts.insert(out.parts.begin(), groups);
    return;
  }
  const Expr number = pool.index(groups.axis.name);
  const Expr count = first->axis.extent;
  out.value = expr::substitute(
      pool, out.value,
      {{pool.index(first->axis.name), pool.binary(DimensionOp::Mod, number, count)},
       {number, pool.binary(DimensionOp::FloorDiv, number, count)}});
  first->at =
      pool.binary(DimensionOp::Add, pool.binary(DimensionOp::Mul, groups.at, count), first->at);
  first->axis = {groups.axis.name, pool.binary(DimensionOp::Mul, groups.axis.extent, count)};
}

}  // namespace

LimbDimensions limb_dimensions(Expr read, const ir::TensorType& type, const ir::Axis& depth,
                               const target::Target& target, expr::ExprPool& pool) {
  LimbDimensions out;
  std::vector<Expr> indices;
  std::optional<LimbDimension> groups;
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr index = read[k];
    const Expr own = pool.index(fmt::format("x{}", k));
    if (const auto group = group_of(index, type.dims[k], depth, pool)) {
      groups = *group;
      groups->axis.name = own.name();
      const Expr axis = pool.index(depth.name);
      out.parts.push_back({depth, axis});
      indices.push_back(
          pool.binary(DimensionOp::Add, pool.binary(DimensionOp::Mul, own, depth.extent), axis));
      continue;
    }
    const bool is_plain = index.op() == DimensionOp::Var &&
                          std::find(indices.begin(), indices.end(), index) == indices.end();
    indices.push_back(is_plain ? index : own);
    out.parts.push_back({{indices.back().name(), type.dims[k]}, index});
  }
  out.value = pool.read(read.name(), read.dtype(), indices);
  if (groups) put_groups(*groups, depth, static_cast<size_t>(target.copies.box_axes), out, pool);
  return out;
}

ir::Axes LimbDimensions::axes() const {
  ir::Axes out;
  for (const LimbDimension& p : parts) out.push_back(p.axis);
  return out;
}

void join_batch(size_t k, const std::pair<Expr, Expr>& operands, LimbDimensions& out,
                expr::ExprPool& pool) {
  for (; k + 1 < out.parts.size(); ++k) {
    const Expr batch = pool.index(out.parts[k].axis.name);
    if (!expr::depends_on(operands.first, batch) || !expr::depends_on(operands.second, batch))
      continue;
    LimbDimension& into = out.parts[0];
    const Expr count = into.axis.extent;
    const Expr first = pool.index(into.axis.name);
    out.value = expr::substitute(pool, out.value,
                                 {{first, pool.binary(DimensionOp::Mod, first, count)},
                                  {batch, pool.binary(DimensionOp::FloorDiv, first, count)}});
    into.axis.extent = pool.binary(DimensionOp::Mul, out.parts[k].axis.extent, count);
    into.at = pool.binary(DimensionOp::Add, pool.binary(DimensionOp::Mul, batch, count), into.at);
    out.parts.erase(out.parts.begin() + static_cast<std::ptrdiff_t>(k));
    return;
  }
}

}  // namespace nautilus::spec
