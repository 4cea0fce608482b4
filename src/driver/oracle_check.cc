// SPDX-License-Identifier: Apache-2.0
#include "driver/oracle_check.h"

#include <fmt/format.h>

#include "scalar/interp.h"
#include "vrtile/interp.h"

namespace nautilus::driver {

std::optional<std::string> check_against(const ir::Program& oracle, const ir::Program& program,
                                         const RunRequest& request, Unit& unit) {
  const auto env = prepare(oracle, request, unit);
  if (!env) return std::nullopt;
  const auto want = spec::evaluate(oracle, *env, {}, unit.pool, unit.sink);
  if (!want) return std::nullopt;
  const auto arithmetic = scalar::Arithmetic::Declared;
  const auto got = program.level == &vrtile::level()
                       ? vrtile::interpret(program, *env, arithmetic, unit.pool, unit.sink)
                       : scalar::interpret(program, *env, arithmetic, unit.sink);
  if (!got) return std::nullopt;
  for (const auto& [name, tensor] : *got) {
    const auto it = want->find(name);
    if (it == want->end()) return fmt::format("the oracle has no output `{}`", name);
    const spec::Result& result = it->second;
    if (tensor.shape != result.value.shape) {
      return fmt::format("`{}` has the shape {}, the oracle's {}", name,
                         expr::shape_text(tensor.shape), expr::shape_text(result.value.shape));
    }
    const spec::Comparison c = spec::compare(tensor, result, ir::numerics_of(oracle));
    if (!c.is_accepted) {
      return fmt::format("`{}`: element {} is {}, the oracle's {} +- {}; {} elements differ", name,
                         c.worst_index, tensor.number(c.worst_index),
                         result.value.number(c.worst_index),
                         result.bound[static_cast<size_t>(c.worst_index)], c.mismatches);
    }
  }
  return "";
}

}  // namespace nautilus::driver
