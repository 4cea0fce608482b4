// SPDX-License-Identifier: Apache-2.0
#include "driver/oracle/oracle_check.h"

#include <fmt/format.h>

#include "scalar/interp.h"
#include "vrtile/interp.h"

namespace nautilus::driver {

std::optional<std::string> check_against(const ir::Program& oracle, const ir::Program& program,
                                         const RunRequest& request, Unit& unit) {
  const auto env = prepare(oracle, request, unit);
  if (!env) return std::nullopt;
  const auto want = oracle_results(oracle, *env, request, unit);
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
    const std::string why = objection(tensor, result, oracle, request);
    if (!why.empty()) return fmt::format("`{}`: {}", name, why);
  }
  return "";
}

}  // namespace nautilus::driver
