// SPDX-License-Identifier: Apache-2.0
#include "choose/steps/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/points/split_reduction.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using expr::Expr;
using lower::MapNest;

// All axes, the nest's own first.
ir::Axes all_axes(const MapNest& nest) {
  ir::Axes out = nest.axes;
  const ir::Axes& reduced = nest.body[1].as<scalar::For>().axes;
  out.insert(out.end(), reduced.begin(), reduced.end());
  return out;
}

// The last place of a read's indices that moves with each axis; empty if one moves none.
std::vector<size_t> places(Expr read, const ir::Axes& axes, expr::ExprPool& pool) {
  std::vector<size_t> out;
  for (const ir::Axis& a : axes) {
    size_t place = read.args().size();
    for (size_t k = 0; k < read.args().size(); ++k) {
      if (expr::depends_on(read[k], pool.index(a.name))) place = k;
    }
    if (place == read.args().size()) return {};
    out.push_back(place);
  }
  return out;
}

}  // namespace

std::vector<ir::Name> axes_in_memory(const MapNest& nest,
                                     const std::map<std::string, ir::TensorType>& buffers,
                                     expr::ExprPool& pool) {
  if (!lower::splittable_axis(nest, buffers, pool)) return {};
  const auto& loop = nest.body[1].as<scalar::For>();
  const ir::Axes axes = all_axes(nest);
  if (loop.axes.size() < 2) return {};
  std::vector<size_t> found;
  expr::for_each(loop.body[0].as<scalar::Update>().value, [&](Expr e) {
    if (e.op() == expr::Op::Read && found.empty()) found = places(e, axes, pool);
  });
  if (found.empty()) return {};
  std::vector<size_t> order(axes.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return found[a] < found[b]; });
  std::vector<ir::Name> out;
  for (const size_t k : order) out.push_back(axes[k].name);
  return out;
}

std::optional<Stages> stages(const MapNest& nest, const ir::Names& inner,
                             const std::map<std::string, ir::TensorType>& buffers,
                             lower::FreshNames& names, expr::ExprPool& pool) {
  const std::vector<ir::Name> order = axes_in_memory(nest, buffers, pool);
  if (order.empty()) return std::nullopt;
  const auto& init = nest.body[0].as<scalar::Init>();
  const auto& loop = nest.body[1].as<scalar::For>();
  const auto& update = loop.body[0].as<scalar::Update>();
  const auto is_inner = [&](ir::Name name) {
    return std::find(inner.begin(), inner.end(), name) != inner.end();
  };
  scalar::For first{{}, scalar::LoopKind::Reduce, {}};
  scalar::For rest{{}, scalar::LoopKind::Reduce, {}};
  for (const ir::Name name : order) {
    for (const ir::Axis& a : loop.axes) {
      if (a.name == name) (is_inner(name) ? first : rest).axes.push_back(a);
    }
  }
  if (first.axes.size() != inner.size() || first.axes.empty() || rest.axes.empty())
    return std::nullopt;

  const expr::DType dtype = buffers.at(std::string(init.target.str())).dtype;
  Stages out;
  out.buffer = names.make(fmt::format("{}_parts", init.target.str()));
  out.type = {dtype, {}};
  const ir::Axes axes = all_axes(nest);
  ir::Exprs indices;
  for (const ir::Name name : order) {
    if (is_inner(name)) continue;
    const auto a = std::find_if(axes.begin(), axes.end(),
                                [&](const ir::Axis& other) { return other.name == name; });
    out.first.axes.push_back(*a);
    out.type.dims.push_back(a->extent);
    indices.push_back(pool.index(name));
  }
  const expr::Value v = expr::identity(update.reducer, dtype);
  const Expr empty = expr::is_float(dtype)        ? pool.floating(v.f, dtype)
                     : dtype == expr::DType::Bool ? pool.boolean(v.i != 0)
                                                  : pool.integer(v.i, dtype);
  first.body.push_back(ir::make(scalar::Update{out.buffer, indices, update.reducer, update.value}));
  out.first.body.push_back(ir::make(scalar::Init{out.buffer, indices, empty}));
  out.first.body.push_back(ir::make(std::move(first)));

  rest.body.push_back(ir::make(scalar::Update{init.target, init.indices, update.reducer,
                                              pool.read(out.buffer, dtype, indices)}));
  out.rest.axes = nest.axes;
  out.rest.body.push_back(nest.body[0]);
  out.rest.body.push_back(ir::make(std::move(rest)));
  return out;
}

}  // namespace nautilus::choose
