// SPDX-License-Identifier: Apache-2.0
#include "small_run.h"

#include "driver/oracle/ladder.h"
#include "ir/environment.h"
#include "scalar/interp.h"
#include "scalar/ops.h"
#include "spec/ops.h"
#include "vrtile/interp.h"
#include "work.h"

namespace nautilus::fuzz {
namespace {

constexpr double kMaxWork = 300'000;

}  // namespace

std::string run_small(const ir::Program& program, driver::Unit& unit) {
  if (program.level == &vrtile::level()) {
    return run_small(vrtile::to_scalar(program, unit.pool), unit);
  }
  if (program.level != &spec::level() && program.level != &scalar::level()) return "";
  driver::RunRequest request;
  request.must_judge = false;
  for (const ir::Op& op : program.body) {
    if (const auto* dim = op.get<ir::Dim>()) request.given.sizes.emplace(dim->name.str(), 3);
  }
  ir::Environment env = request.given;
  if (!ir::complete(program, {}, env, unit.sink)) return "";
  ir::Environment sized = env;
  ir::compute_sizes(program, sized);
  if (!(work_of(program, sized) <= kMaxWork)) return "";
  if (program.level == &spec::level()) {
    return driver::check_ladder(program, request, unit).value_or("");
  }
  for (const auto& [name, type] : scalar::buffers(program, scalar::Role::Input)) {
    if (const auto shape = ir::evaluate_shape(type.dims, sized))
      env.tensors.emplace(name, expr::Tensor::zeros(type.dtype, *shape));
  }
  for (const auto arithmetic : {scalar::Arithmetic::Oracle, scalar::Arithmetic::Declared})
    scalar::interpret(program, env, arithmetic, unit.sink);
  return "";
}

}  // namespace nautilus::fuzz
