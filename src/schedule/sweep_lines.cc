// SPDX-License-Identifier: Apache-2.0
// Schedules that differ from the first one in one line of a kernel of rows, points or parts.
#include <fmt/format.h>

#include "ir/print.h"
#include "schedule/sweep.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

// Other values of a line that are worth a try.
ir::Block others_of(const ir::Op& line) {
  ir::Block out;
  if (const auto* columns = line.get<dc::Columns>()) {
    for (const int64_t n : {*columns->count / 2, *columns->count * 2})
      out.push_back(ir::make(dc::Columns{n, By::Tuned}));
  }
  if (const auto* vector = line.get<dc::Vector>()) {
    for (int64_t n = 2; n <= 8; n *= 2) {
      if (n != vector->elements) out.push_back(ir::make(dc::Vector{n, By::Tuned}));
    }
  }
  if (const auto* groups = line.get<dc::Groups>()) {
    for (int64_t n = 1; n <= 4; n *= 2) {
      if (n != groups->count) out.push_back(ir::make(dc::Groups{n, groups->way, By::Tuned}));
    }
  }
  if (const auto* registers = line.get<dc::Registers>()) {
    for (const int64_t n : {-16, 16, 32})
      out.push_back(ir::make(dc::Registers{*registers->compute + n, {}, By::Tuned}));
  }
  if (const auto* split = line.get<dc::Split>()) {
    for (const int64_t n : {int64_t{1}, *split->parts / 4, *split->parts * 4, int64_t{256}}) {
      if (n > 0 && n != split->parts)
        out.push_back(ir::make(dc::Split{split->axis, n, split->combine, By::Tuned}));
    }
  }
  if (const auto* lanes = line.get<dc::Lanes>()) {
    for (const int64_t n : {1, 4, 8, 16, 32}) {
      if (n != lanes->count) out.push_back(ir::make(dc::Lanes{n, By::Tuned}));
    }
  }
  if (const auto* each = line.get<dc::Each>()) {
    for (const int64_t n : {1, 2, 4}) {
      if (n != each->points) out.push_back(ir::make(dc::Each{n, By::Tuned}));
    }
  }
  return out;
}

}  // namespace

std::vector<Swept> sweep_lines(const Schedule& first) {
  std::vector<Swept> out;
  for (size_t k = 0; k < first.kernels.size(); ++k) {
    if (first.kernels[k].form == dc::Form::Tile) continue;
    const auto& ways = first.kernels[k].ways;
    for (size_t w = 0; w < ways.size(); ++w) {
      for (size_t n = 0; n < ways[w].size(); ++n) {
        for (const ir::Op& other : others_of(ways[w][n])) {
          Swept s{first, {}, 0};
          s.schedule.kernels[k].ways[w][n] = other;
          s.name = fmt::format("kernel {} way {} {}", first.kernels[k].name, w + 1,
                               ir::print(dc::with_by(other, By::Auto)));
          out.push_back(std::move(s));
        }
      }
    }
  }
  return out;
}

}  // namespace nautilus::schedule
