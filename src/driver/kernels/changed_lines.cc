// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/changed_lines.h"

#include <algorithm>

#include "decision/lines.h"
#include "ir/print.h"

namespace nautilus::driver {
namespace {

using schedule::KernelSchedule;

bool has_line(const ir::Block& lines, const ir::Op& line) {
  const std::string text = ir::print(decision::with_by(line, decision::By::Auto));
  return std::any_of(lines.begin(), lines.end(), [&](const ir::Op& own) {
    return &own.info() == &line.info() &&
           ir::print(decision::with_by(own, decision::By::Auto)) == text;
  });
}

}  // namespace

schedule::Schedule with_changes_marked(schedule::Schedule given, const schedule::Schedule& first) {
  for (KernelSchedule& kernel : given.kernels) {
    const auto usual = std::find_if(
        first.kernels.begin(), first.kernels.end(),
        [&](const KernelSchedule& k) { return k.name == kernel.name && k.form == kernel.form; });
    if (usual == first.kernels.end()) continue;
    const size_t both = std::min(kernel.alternatives.size(), usual->alternatives.size());
    for (size_t k = 0; k < both; ++k) {
      for (ir::Op& line : kernel.alternatives[k]) {
        if (!has_line(usual->alternatives[k], line))
          line = decision::with_by(line, decision::By::User);
      }
    }
  }
  return given;
}

}  // namespace nautilus::driver
