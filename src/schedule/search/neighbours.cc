// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/neighbours.h"

#include <fmt/format.h>

#include <map>

#include "ir/print.h"
#include "schedule/search/line_values.h"
#include "schedule/search/program_values.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

bool is_structure(const ir::Op& line) {
  const dc::Topic topic = dc::topic(line.info());
  return topic == dc::Topic::Members || topic == dc::Topic::Sizes;
}

// The other lines of a tile kernel that stay when a line changes: its statements and sizes, and
// lines that are not `auto`. Groups follow from the rows if these change.
ir::Block with_changed(const ir::Block& lines, size_t changed, const ir::Op& other) {
  ir::Block out;
  for (size_t n = 0; n < lines.size(); ++n) {
    if (n == changed) {
      out.push_back(other);
      continue;
    }
    const bool is_by_rule = dc::by_of(lines[n]) == By::Auto;
    if (is_by_rule && !is_structure(lines[n])) continue;
    if (other.is<dc::Tile>() && lines[n].is<dc::Groups>()) continue;
    out.push_back(lines[n]);
  }
  return out;
}

}  // namespace

std::vector<Neighbour> neighbours(const Schedule& complete, const target::Target& target) {
  std::vector<Neighbour> out;
  for (OtherProgram& other : with_other_program_lines(complete))
    out.push_back({std::move(other.schedule), std::move(other.name), {}});
  for (size_t k = 0; k < complete.kernels.size(); ++k) {
    const KernelSchedule& kernel = complete.kernels[k];
    for (size_t w = 0; w < kernel.alternatives.size(); ++w) {
      const ir::Block& lines = kernel.alternatives[w];
      for (size_t n = 0; n < lines.size(); ++n) {
        for (const ir::Op& other : other_values(lines[n], target)) {
          Neighbour next{complete, {}, kernel.name, w};
          ir::Block& own = next.schedule.kernels[k].alternatives[w];
          if (kernel.form == dc::Form::Tile)
            own = with_changed(lines, n, other);
          else
            next.schedule = with_value(complete, k, w, n, other);
          next.name = fmt::format("{} {}", kernel.name, ir::print(dc::with_by(other, By::Auto)));
          out.push_back(std::move(next));
        }
      }
      for (const ir::Op& missing : missing_values(kernel, w, target)) {
        Neighbour next{complete, {}, kernel.name, w};
        next.schedule.kernels[k].alternatives[w].push_back(missing);
        next.name = fmt::format("{} {}", kernel.name, ir::print(dc::with_by(missing, By::Auto)));
        out.push_back(std::move(next));
      }
    }
  }
  return out;
}

std::optional<Schedule> crossed(const Schedule& a, const Schedule& b, base::Random& random) {
  if (a.kernels.size() != b.kernels.size()) return std::nullopt;
  Schedule out = a;
  for (size_t k = 0; k < a.kernels.size(); ++k) {
    const KernelSchedule& other = b.kernels[k];
    KernelSchedule& own = out.kernels[k];
    if (own.name != other.name || own.form != other.form ||
        own.alternatives.size() != other.alternatives.size())
      return std::nullopt;
    for (size_t w = 0; w < own.alternatives.size(); ++w) {
      std::map<dc::Topic, bool> takes_other;
      ir::Block mixed;
      const auto take = [&](const ir::Block& lines, bool is_other) {
        for (const ir::Op& line : lines) {
          const dc::Topic topic = dc::topic(line.info());
          const auto [it, is_new] = takes_other.emplace(topic, false);
          if (is_new) it->second = topic != dc::Topic::Members && random.chance(0.5);
          if (it->second == is_other) mixed.push_back(line);
        }
      };
      take(own.alternatives[w], false);
      take(other.alternatives[w], true);
      own.alternatives[w] = std::move(mixed);
    }
  }
  return out;
}

}  // namespace nautilus::schedule
