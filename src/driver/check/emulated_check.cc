// SPDX-License-Identifier: Apache-2.0
#include "driver/check/emulated_check.h"

#include <fmt/format.h>

#include "driver/run/run.h"
#include "matile/ops.h"

namespace nautilus::driver {

std::optional<std::string> check_emulated(const ir::Program& oracle, const ir::Program& program,
                                          const RunRequest& request, Unit& unit) {
  if (!matile::verify_final(program, unit.sink)) return std::nullopt;
  const auto env = prepare(oracle, request, unit);
  if (!env) return std::nullopt;
  const auto want = oracle_results(oracle, *env, request, unit);
  if (!want) return std::nullopt;
  std::string error;
  EmulateOptions options;
  options.seed = request.seed;
  options.idle_limit = request.idle_limit;
  const auto got = run_emulated(program, environment_of(program, *env), options, unit.pool, &error);
  if (!got) return error;
  for (const auto& [name, tensor] : *got) {
    const auto it = want->find(name);
    if (it == want->end()) continue;
    const std::string why = objection(tensor, it->second, oracle, request);
    if (!why.empty()) return fmt::format("`{}`: {}", name, why);
  }
  return "";
}

}  // namespace nautilus::driver
