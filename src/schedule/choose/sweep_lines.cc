// SPDX-License-Identifier: Apache-2.0
// Schedules that differ from the first one in one line about the program, or of a kernel of rows,
// points or parts.
#include <fmt/format.h>

#include "ir/print.h"
#include "schedule/choose/sweep.h"
#include "schedule/search/line_values.h"
#include "schedule/search/program_values.h"
#include "schedule/text/schedule.h"

namespace nautilus::schedule {

std::vector<Swept> sweep_program_lines(const Schedule& first) {
  std::vector<Swept> out;
  for (OtherProgram& other : with_other_program_lines(first))
    out.push_back({std::move(other.schedule), std::move(other.name), 0});
  return out;
}

std::vector<Swept> sweep_lines(const Schedule& first, const Target& target) {
  std::vector<Swept> out;
  for (size_t k = 0; k < first.kernels.size(); ++k) {
    if (first.kernels[k].form == decision::Form::Tile) continue;
    const auto& alternatives = first.kernels[k].alternatives;
    for (size_t w = 0; w < alternatives.size(); ++w) {
      for (size_t n = 0; n < alternatives[w].size(); ++n) {
        for (const ir::Op& other : other_values(alternatives[w][n], target)) {
          Swept s{with_value(first, k, w, n, other), {}, 0};
          s.name = fmt::format("kernel {} alternative {} {}", first.kernels[k].name, w + 1,
                               ir::print(decision::with_by(other, By::Auto)));
          out.push_back(std::move(s));
        }
      }
      for (const ir::Op& missing : missing_values(first.kernels[k], w, target)) {
        Swept s{first, {}, 0};
        s.schedule.kernels[k].alternatives[w].push_back(missing);
        s.name = fmt::format("kernel {} alternative {} {}", first.kernels[k].name, w + 1,
                             ir::print(decision::with_by(missing, By::Auto)));
        out.push_back(std::move(s));
      }
    }
  }
  return out;
}

}  // namespace nautilus::schedule
