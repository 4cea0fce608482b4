// SPDX-License-Identifier: Apache-2.0
// Schedules that differ from the first one in one line of a kernel of rows, points or parts.
#include <fmt/format.h>

#include <set>

#include "ir/print.h"
#include "schedule/choose/sweep.h"
#include "schedule/text/schedule.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

constexpr int64_t kUsualBytes = 2;  // of an element of most rows

// Values beside the one that a line has.
std::set<int64_t> without(ir::OptionalInt now, std::set<int64_t> values) {
  if (now) values.erase(*now);
  return values;
}

// Powers of two from the first number to the last.
std::set<int64_t> powers(int64_t first, int64_t last) {
  std::set<int64_t> out;
  for (int64_t n = first; n <= last; n *= 2) out.insert(n);
  return out;
}

template <class Line>
ir::Op turned(Line line) {
  line.use = line.use == dc::Switch::On ? dc::Switch::Off : dc::Switch::On;
  line.by = By::Tuned;
  return ir::make(line);
}

// Other values of a line that are worth a try.
ir::Block others_of(const ir::Op& line, const Target& target) {
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
    add(&d, d.elements, powers(2, target.memory.vector_bytes / kUsualBytes));
  } else if (line.is<dc::Groups>()) {
    auto d = line.as<dc::Groups>();
    add(&d, d.count, powers(1, target.rows.groups));
  } else if (line.is<dc::Registers>()) {
    auto d = line.as<dc::Registers>();
    const int64_t now = d.compute.value_or(0);
    const int64_t step = 2 * target.limits.register_step;
    add(&d, d.compute, {now - step, now + step, now + 2 * step});
  } else if (line.is<dc::Ahead>()) {
    auto d = line.as<dc::Ahead>();
    std::set<int64_t> values = around(d.rows, 2);
    values.insert({0, target.rows.ahead_bytes / target.rows.ahead_row});
    add(&d, d.rows, values);
  } else if (line.is<dc::Split>()) {
    auto d = line.as<dc::Split>();
    std::set<int64_t> values = around(d.parts, 4);
    values.insert({1, target.points.parts_of_many});
    values.erase(0);
    add(&d, d.parts, values);
  } else if (line.is<dc::Lanes>()) {
    auto d = line.as<dc::Lanes>();
    const int64_t warp = target.limits.warp_threads;
    std::set<int64_t> values = powers(warp / 8, warp);
    values.insert(1);
    add(&d, d.count, values);
  } else if (line.is<dc::Each>()) {
    auto d = line.as<dc::Each>();
    add(&d, d.points, powers(1, target.points.each));
  } else if (line.is<dc::Keep>()) {
    out.push_back(turned(line.as<dc::Keep>()));
  } else if (line.is<dc::Unpacked>()) {
    out.push_back(turned(line.as<dc::Unpacked>()));
  } else if (line.is<dc::Shared>()) {
    auto d = line.as<dc::Shared>();
    d.moment = d.moment == dc::Moment::Late ? dc::Moment::Early : dc::Moment::Late;
    d.by = By::Tuned;
    out.push_back(ir::make(d));
  } else if (line.is<dc::Threads>()) {
    auto d = line.as<dc::Threads>();
    add(&d, d.count, around(d.count, 2));
  }
  return out;
}

}  // namespace

std::vector<Swept> sweep_lines(const Schedule& first, const Target& target) {
  std::vector<Swept> out;
  for (size_t k = 0; k < first.kernels.size(); ++k) {
    if (first.kernels[k].form == dc::Form::Tile) continue;
    const auto& alternatives = first.kernels[k].alternatives;
    for (size_t w = 0; w < alternatives.size(); ++w) {
      for (size_t n = 0; n < alternatives[w].size(); ++n) {
        for (const ir::Op& other : others_of(alternatives[w][n], target)) {
          Swept s{first, {}, 0};
          s.schedule.kernels[k].alternatives[w][n] = other;
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
