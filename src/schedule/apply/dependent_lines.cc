// SPDX-License-Identifier: Apache-2.0
#include "schedule/apply/dependent_lines.h"

#include <algorithm>

#include "decision/decisions.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

// Whether an operand is a place of the tensor: `K`, `K.2`.
bool is_of(ir::Name operand, ir::Name tensor) {
  const std::string_view name = operand.str();
  const std::string_view stem = tensor.str();
  if (name == stem) return true;
  if (!name.starts_with(stem) || name.size() < stem.size() + 2 || name[stem.size()] != '.')
    return false;
  const std::string_view place = name.substr(stem.size() + 1);
  return std::all_of(place.begin(), place.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether the line is about copies of the tensor.
bool is_about_copies(const ir::Op& line, ir::Name tensor) {
  if (line.is<dc::Takes>()) return true;  // rules say it again where other boxes are left
  if (const auto* whole = line.get<dc::Whole>()) return is_of(whole->operand, tensor);
  if (const auto* promote = line.get<dc::Promote>()) return is_of(promote->operand, tensor);
  if (const auto* stages = line.get<dc::Stages>())
    return stages->ring && is_of(stages->ring, tensor);
  const auto* ring = line.get<dc::Ring>();
  return ring && std::any_of(ring->operands.begin(), ring->operands.end(),
                             [&](ir::Name operand) { return is_of(operand, tensor); });
}

}  // namespace

Schedule without_dependents(Schedule schedule) {
  for (KernelSchedule& kernel : schedule.kernels) {
    for (ir::Block& lines : kernel.alternatives) {
      std::vector<ir::Name> direct;
      for (const ir::Op& line : lines) {
        const auto* bring = line.get<dc::Bring>();
        if (bring && bring->path == dc::OperandPath::Direct) direct.push_back(bring->operand);
      }
      std::erase_if(lines, [&](const ir::Op& line) {
        return std::any_of(direct.begin(), direct.end(), [&](ir::Name tensor) {
          return is_about_copies(line, tensor) && dc::by_of(line) == By::Auto;
        });
      });
    }
  }
  return schedule;
}

}  // namespace nautilus::schedule
