// SPDX-License-Identifier: Apache-2.0
#include "driver/kernel_check.h"

#include <fmt/format.h>

#include "driver/lower_to_kernels.h"
#include "driver/run.h"

namespace nautilus::driver {

std::optional<std::string> check_kernels(const ir::Program& program, const RunRequest& request,
                                         Unit& unit) {
  const auto env = prepare(program, request, unit);
  if (!env) return std::nullopt;
  const auto want = spec::evaluate(program, *env, {}, unit.pool, unit.sink);
  if (!want) return std::nullopt;
  const auto kernels = lower_to_kernels(program, unit);
  if (!kernels) return std::nullopt;
  EmulateOptions options;
  options.seed = request.seed;
  std::string error;
  const auto got =
      run_emulated(*kernels, environment_of(*kernels, *env), options, unit.pool, &error);
  if (!got) return "the emulator: " + error;
  for (const CheckLine& line : compare_outputs(*got, *want, ir::numerics_of(program))) {
    const spec::Comparison& c = line.comparison;
    if (c.is_accepted) continue;
    const spec::Result& result = want->at(line.tensor);
    return fmt::format("`{}`: in kernels, element {} is {}, the oracle {} +- {}", line.tensor,
                       c.worst_index, got->at(line.tensor).number(c.worst_index),
                       result.value.number(c.worst_index),
                       result.bound[static_cast<size_t>(c.worst_index)]);
  }
  return "";
}

}  // namespace nautilus::driver
