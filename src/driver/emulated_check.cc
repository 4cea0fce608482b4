// SPDX-License-Identifier: Apache-2.0
#include "driver/emulated_check.h"

#include <fmt/format.h>

#include "driver/run.h"
#include "matile/ops.h"

namespace nautilus::driver {

std::optional<std::string> check_emulated(const ir::Program& oracle, const ir::Program& program,
                                          const RunRequest& request, Unit& unit) {
  if (!matile::verify_final(program, unit.sink)) return std::nullopt;
  const auto env = prepare(oracle, request, unit);
  if (!env) return std::nullopt;
  const auto want = spec::evaluate(oracle, *env, {}, unit.pool, unit.sink);
  if (!want) return std::nullopt;
  std::string error;
  EmulateOptions options;
  options.seed = request.seed;
  const auto got = run_emulated(program, environment_of(program, *env), options, unit.pool, &error);
  if (!got) return error;
  for (const CheckLine& line : compare_outputs(*got, *want, ir::numerics_of(oracle))) {
    if (!line.comparison.is_accepted)
      return fmt::format("`{}`: {} elements differ, the worst is {}", line.tensor,
                         line.comparison.mismatches, line.comparison.worst_index);
  }
  return "";
}

}  // namespace nautilus::driver
