// SPDX-License-Identifier: Apache-2.0
#include "estimate/registers.h"

#include <algorithm>

namespace nautilus::estimate {
namespace {

constexpr int64_t kWordBytes = 4;

int64_t in_steps(int64_t registers, const target::Limits& limits) {
  return registers / limits.register_step * limits.register_step;
}

int64_t least_of_loaders(const Roles& roles, const target::Tiles& tiles) {
  // With more groups than two the registers are worth more to those that compute.
  return roles.are_loaders_busy && roles.groups <= 2 ? tiles.busy_loader_registers
                                                     : tiles.least_loader_registers;
}

}  // namespace

int64_t element_registers(int64_t elements, int64_t element_bytes) {
  return (elements * element_bytes + kWordBytes - 1) / kWordBytes;
}

int64_t tile_registers(int64_t elements, int64_t element_bytes, const target::Limits& limits) {
  const int64_t each = (elements + limits.group_threads - 1) / limits.group_threads;
  return element_registers(each, element_bytes);
}

int64_t column_registers(int64_t columns) {
  constexpr int64_t kSharing = 4;  // threads that hold different columns of a row
  return columns / kSharing;
}

int64_t instruction_registers(int64_t columns, const target::Target& target) {
  return tile_registers(target.matrix.rows * columns, kWordBytes, target.limits) +
         target.matrix.spare_registers;
}

int64_t Roles::threads(const target::Limits& limits) const {
  return limits.group_threads * (groups + (has_loaders ? 1 : 0));
}

int64_t pool_registers(int64_t threads, int64_t resident, const target::Limits& limits) {
  return threads * limits.registers(static_cast<int>(threads), static_cast<int>(resident));
}

int64_t pool_registers(const Roles& roles, const target::Limits& limits) {
  return pool_registers(roles.threads(limits), roles.resident, limits);
}

int64_t compute_registers(const Roles& roles, const target::Target& target) {
  const target::Limits& limits = target.limits;
  const int64_t load = limits.group_threads * least_of_loaders(roles, target.tiles);
  const int64_t left = pool_registers(roles, limits) - load;
  return std::min(target.tiles.most_registers,
                  in_steps(left / (limits.group_threads * roles.groups), limits));
}

int64_t loader_registers(const Roles& roles, int64_t compute, const target::Target& target) {
  const target::Limits& limits = target.limits;
  const int64_t left =
      pool_registers(roles, limits) - limits.group_threads * roles.groups * compute;
  return std::max(
      least_of_loaders(roles, target.tiles),
      std::min(in_steps(left / limits.group_threads, limits), target.tiles.busy_loader_registers));
}

int64_t needed_registers(const Roles& roles, int64_t compute, int64_t load,
                         const target::Limits& limits) {
  return limits.group_threads * (roles.groups * compute + (roles.has_loaders ? load : 0));
}

int64_t ctas_that_fit(int64_t threads, int64_t registers, const target::Limits& limits) {
  const int64_t steps = (registers + limits.register_step - 1) / limits.register_step;
  return std::min<int64_t>({limits.sm_registers / (steps * limits.register_step * threads),
                            limits.sm_threads / threads, limits.sm_ctas});
}

int64_t most_registers(int64_t threads, int64_t registers, const target::Limits& limits) {
  const int64_t ctas = ctas_that_fit(threads, registers, limits);
  const int64_t most = std::min<int64_t>(limits.launch_registers, limits.sm_registers / threads);
  while (registers + limits.register_step <= most &&
         ctas_that_fit(threads, registers + limits.register_step, limits) == ctas)
    registers += limits.register_step;
  return registers;
}

}  // namespace nautilus::estimate
