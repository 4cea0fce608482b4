// SPDX-License-Identifier: Apache-2.0
#include "lower/points/split_reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/points/nest_reduction.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

Expr identity(expr::ExprPool& pool, expr::Reducer reducer, DType dtype) {
  const expr::Value v = expr::identity(reducer, dtype);
  if (expr::is_float(dtype)) return pool.floating(v.f, dtype);
  return dtype == DType::Bool ? pool.boolean(v.i != 0) : pool.integer(v.i, dtype);
}

// A read that has all the axes: no element is read twice.
bool covers(Expr value, const std::vector<Expr>& axes) {
  bool found = false;
  expr::for_each(value, [&](Expr e) {
    found |= e.op() == EK::Read &&
             std::all_of(axes.begin(), axes.end(), [&](Expr a) { return expr::depends_on(e, a); });
  });
  return found;
}

// The loop of a nest that is one reduction; null if it is none.
const scalar::For* loop_of(const MapNest& nest) {
  const auto reduction = reduction_of(nest);
  return reduction ? reduction->loop : nullptr;
}

// On sizes: where the line says that a reduction of that many terms is in parts; null if it does
// not say.
Expr condition_of(const decision::Split& line, const ir::Axes& axes, Expr terms,
                  expr::ExprPool& pool) {
  Expr out;
  if (line.terms) out = pool.binary(EK::Ge, terms, pool.integer(*line.terms));
  if (!line.results) return out;
  Expr results = pool.integer(1);
  for (const ir::Axis& a : axes)
    results = results.op() == EK::IntConst && results.integer() == 1
                  ? a.extent
                  : pool.binary(EK::Mul, results, a.extent);
  const Expr is_few = pool.binary(EK::Le, results, pool.integer(*line.results));
  return out ? pool.binary(EK::And, out, is_few) : is_few;
}

}  // namespace

ir::Name splittable_axis(const MapNest& nest, const std::map<std::string, ir::TensorType>& buffers,
                         expr::ExprPool& pool) {
  const scalar::For* loop = loop_of(nest);
  if (!loop) return {};
  const DType dtype = buffers.at(std::string(nest.body[0].as<scalar::Init>().target.str())).dtype;
  if (expr::compute_dtype(dtype) != dtype) return {};  // parts would be rounded
  std::vector<Expr> axes;
  for (const ir::Axis& a : nest.axes) axes.push_back(pool.index(a.name));
  for (const ir::Axis& a : loop->axes) axes.push_back(pool.index(a.name));
  return covers(loop->body[0].as<scalar::Update>().value, axes) ? loop->axes[0].name : ir::Name();
}

std::optional<SplitReduction> split_reduction(const MapNest& nest,
                                              const std::map<std::string, ir::TensorType>& buffers,
                                              const decision::Split& line, FreshNames& names,
                                              expr::ExprPool& pool) {
  const int64_t parts = line.parts.value_or(1);
  const ir::Name axis = splittable_axis(nest, buffers, pool);
  if (!axis) return std::nullopt;
  const scalar::For* loop = loop_of(nest);
  const auto* init = &nest.body[0].as<scalar::Init>();
  const auto* update = &loop->body[0].as<scalar::Update>();
  const DType dtype = buffers.at(std::string(init->target.str())).dtype;
  const Expr extent = loop->axes[0].extent;
  if (extent.op() == EK::IntConst && extent.integer() < parts) return std::nullopt;

  SplitReduction out;
  out.axis = axis;
  out.parts = parts;
  out.buffer = names.make(fmt::format("{}_parts", init->target.str()));
  const Expr count = pool.integer(parts);
  out.type = {dtype, {count}};
  const ir::Name part_name = names.make("part");
  const ir::Name step_name = names.make("turn");
  const Expr part = pool.index(part_name);
  out.partial.axes.push_back({part_name, count});
  ir::Exprs indices = {part};
  for (const ir::Axis& a : nest.axes) {
    out.partial.axes.push_back(a);
    out.type.dims.push_back(a.extent);
    indices.push_back(pool.index(a.name));
  }
  const Expr empty = identity(pool, update->reducer, dtype);
  const Expr at = pool.binary(EK::Add, pool.binary(EK::Mul, count, pool.index(step_name)), part);
  const Expr value = expr::substitute(pool, update->value, {{pool.index(loop->axes[0].name), at}});
  scalar::For steps{loop->axes, scalar::LoopKind::Reduce, {}};
  steps.axes[0] = {
      step_name,
      pool.binary(EK::FloorDiv, pool.binary(EK::Add, extent, pool.integer(parts - 1)), count)};
  steps.body.push_back(
      ir::make(scalar::Update{out.buffer, indices, update->reducer,
                              pool.select(pool.binary(EK::Lt, at, extent), value, empty)}));
  out.partial.body.push_back(ir::make(scalar::Init{out.buffer, indices, empty}));
  out.partial.body.push_back(ir::make(std::move(steps)));

  scalar::For gather{{{part_name, count}}, scalar::LoopKind::Reduce, {}};
  gather.body.push_back(ir::make(scalar::Update{init->target, init->indices, update->reducer,
                                                pool.read(out.buffer, dtype, indices)}));
  out.final.axes = nest.axes;
  out.final.body.push_back(nest.body[0]);
  out.final.body.push_back(ir::make(std::move(gather)));

  out.condition = condition_of(line, nest.axes, extent, pool);
  if (!out.condition) return out;
  out.type.dims[0] = pool.select(out.condition, count, pool.integer(0));
  return out;
}

}  // namespace nautilus::lower
