// SPDX-License-Identifier: Apache-2.0
// Schedules that differ from the first one in one line of a kernel of rows, points or parts.
#include <fmt/format.h>

#include <set>

#include "ir/print.h"
#include "schedule/sweep.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

// Values beside the one that a line has.
std::set<int64_t> without(ir::OptionalInt now, std::set<int64_t> values) {
  if (now) values.erase(*now);
  return values;
}

// Other values of a line that are worth a try.
ir::Block others_of(const ir::Op& line) {
  ir::Block out;
  const auto add = [&](auto decision, ir::OptionalInt& value, std::set<int64_t> values) {
    for (const int64_t n : without(value, std::move(values))) {
      value = n;
      decision->by = By::Tuned;
      out.push_back(ir::make(*decision));
    }
  };
  const auto around = [](ir::OptionalInt n, int64_t by) {
    return std::set<int64_t>{n.value_or(0) / by, n.value_or(0) * by};
  };
  if (line.is<dc::Columns>()) {
    auto d = line.as<dc::Columns>();
    add(&d, d.count, around(d.count, 2));
  } else if (line.is<dc::Vector>()) {
    auto d = line.as<dc::Vector>();
    add(&d, d.elements, {2, 4, 8});
  } else if (line.is<dc::Groups>()) {
    auto d = line.as<dc::Groups>();
    add(&d, d.count, {1, 2, 4});
  } else if (line.is<dc::Registers>()) {
    auto d = line.as<dc::Registers>();
    const int64_t now = d.compute.value_or(0);
    add(&d, d.compute, {now - 16, now + 16, now + 32});
  } else if (line.is<dc::Ahead>()) {
    auto d = line.as<dc::Ahead>();
    std::set<int64_t> values = around(d.rows, 2);
    values.insert({0, 4});
    add(&d, d.rows, values);
  } else if (line.is<dc::Split>()) {
    auto d = line.as<dc::Split>();
    std::set<int64_t> values = around(d.parts, 4);
    values.insert({1, 256});
    values.erase(0);
    add(&d, d.parts, values);
  } else if (line.is<dc::Lanes>()) {
    auto d = line.as<dc::Lanes>();
    add(&d, d.count, {1, 4, 8, 16, 32});
  } else if (line.is<dc::Each>()) {
    auto d = line.as<dc::Each>();
    add(&d, d.points, {1, 2, 4});
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
          s.name = fmt::format("kernel {} alternative {} {}", first.kernels[k].name, w + 1,
                               ir::print(dc::with_by(other, By::Auto)));
          out.push_back(std::move(s));
        }
      }
    }
  }
  return out;
}

}  // namespace nautilus::schedule
