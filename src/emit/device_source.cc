// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "emit/emit.h"

namespace nautilus::emit {
namespace {

std::string with_prelude(bool has_ordered_reads, const std::string& rest) {
  return (has_ordered_reads ? "#define ORDERED_READS\n" : "") + std::string(device_prelude()) +
         rest;
}

}  // namespace

std::string device_source(const KernelText& kernel) {
  return with_prelude(kernel.has_ordered_reads,
                      kernel.instructions + std::string(kBodyMarker) + kernel.body);
}

std::string device_source(const std::vector<KernelText>& kernels) {
  if (kernels.size() == 1) return device_source(kernels[0]);
  std::string rest(kBodyMarker);
  for (const KernelText& k : kernels) {
    // Waits of the kernel's own would hide the prelude's, which names no registers.
    const bool has_waits = k.instructions.find(" wgmma_wait(") != std::string::npos;
    rest += fmt::format("namespace scope_{} {{\n{}{}{}}}\n", k.name,
                        has_waits ? "using ::wgmma_wait;\n" : "", k.instructions, k.body);
  }
  const bool has_ordered_reads = std::any_of(
      kernels.begin(), kernels.end(), [](const KernelText& k) { return k.has_ordered_reads; });
  return with_prelude(has_ordered_reads, rest);
}

}  // namespace nautilus::emit
