// SPDX-License-Identifier: Apache-2.0
#include "driver/load/draw_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "matile/ops.h"

namespace nautilus::driver {
namespace {

// The sizes that the plan computes: extents of other kernels' results may contain them.
void add_plan_sizes(const ir::Program& program, int multiprocessors, ir::Environment& env) {
  for (const ir::Op& op : program.body) {
    if (const auto* m = op.get<ir::Machine>()) env.sizes.emplace(m->name.str(), multiprocessors);
    const auto* let = op.get<matile::Let>();
    if (!let) continue;
    const expr::Value value = ir::evaluate(let->value, env);
    if (let->value.dtype() == expr::DType::I64) {
      env.sizes.emplace(let->name.str(), value.i);
    } else {
      env.scalars.emplace(let->name.str(), value);
    }
  }
}

expr::Tensor drawn(expr::DType dtype, std::vector<int64_t> shape, int64_t positions,
                   base::Random& random) {
  expr::Tensor t = expr::Tensor::zeros(dtype, std::move(shape));
  for (expr::Value& v : t.data) {
    if (expr::is_float(dtype)) {
      v.f = expr::round_to(dtype, random.normal());
    } else {
      v.i = random.integer(0, dtype == expr::DType::Bool ? 1 : positions);
    }
  }
  return t;
}

}  // namespace

std::optional<ir::Environment> draw_inputs(const ir::Program& program, ir::Environment given,
                                           uint64_t seed, int multiprocessors, Unit& unit,
                                           std::string* error) {
  const auto inputs = matile::tensors(program, matile::TensorRole::Input);
  std::map<std::string, ir::TensorType> known;
  for (const auto& [name, type] : inputs) {
    if (given.tensors.contains(name)) known.emplace(name, type);
  }
  if (!ir::complete(program, known, given, unit.sink)) return std::nullopt;
  ir::Environment sized = given;
  add_plan_sizes(program, multiprocessors, sized);
  std::map<std::string, std::vector<int64_t>> shapes;
  int64_t least = 127;  // the largest integer of 8 bits
  for (const ir::Op& op : program.body) {
    const auto* t = op.get<matile::Tensor>();
    if (!t) continue;
    const auto shape = ir::evaluate_shape(t->type.dims, sized);
    if (!shape) {
      *error = fmt::format("tensor `{}` is too large", t->name.str());
      return std::nullopt;
    }
    for (int64_t extent : *shape) least = std::min(least, std::max<int64_t>(0, extent - 1));
    shapes.emplace(t->name.str(), *shape);
  }
  uint64_t stream = 0;
  for (const auto& [name, type] : inputs) {
    base::Random random(seed * 1000003 + ++stream);
    if (!given.tensors.contains(name))
      given.tensors.emplace(name, drawn(type.dtype, shapes.at(name), least, random));
  }
  return given;
}

}  // namespace nautilus::driver
