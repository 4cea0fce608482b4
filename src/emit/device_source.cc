// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "emit/emit.h"

namespace nautilus::emit {
namespace {

constexpr std::string_view kOrderedReads = "#define ORDERED_READS\n";

std::string with_prelude(const std::string& rest) { return std::string(device_prelude()) + rest; }

std::string reads_text(bool are_ordered) {
  return (are_ordered ? std::string(kOrderedReads) : "") + std::string(reads_prelude());
}

// The functions that read, once for each order of reads that kernels have.
std::string reads_of_both() {
  return fmt::format(
      "namespace free_reads {{\n{}}}\nnamespace ordered_reads {{\n{}}}\n#undef ORDERED_READS\n",
      reads_text(false), reads_text(true));
}

}  // namespace

std::string device_source(const KernelText& kernel) {
  return with_prelude(reads_text(kernel.has_ordered_reads) + kernel.instructions +
                      std::string(kBodyMarker) + kernel.body);
}

std::string device_source(const std::vector<KernelText>& kernels) {
  if (kernels.size() == 1) return device_source(kernels[0]);
  const bool are_mixed = std::any_of(kernels.begin(), kernels.end(), [&](const KernelText& k) {
    return k.has_ordered_reads != kernels[0].has_ordered_reads;
  });
  std::string rest = are_mixed ? reads_of_both() : reads_text(kernels[0].has_ordered_reads);
  rest += kBodyMarker;
  for (const KernelText& k : kernels) {
    // Waits of the kernel's own would hide the prelude's, which names no registers.
    const bool has_waits = k.instructions.find(" wgmma_wait(") != std::string::npos;
    const std::string_view reads = !are_mixed            ? ""
                                   : k.has_ordered_reads ? "using namespace ordered_reads;\n"
                                                         : "using namespace free_reads;\n";
    rest += fmt::format("namespace scope_{} {{\n{}{}{}{}}}\n", k.name, reads,
                        has_waits ? "using ::wgmma_wait;\n" : "", k.instructions, k.body);
  }
  return with_prelude(rest);
}

}  // namespace nautilus::emit
