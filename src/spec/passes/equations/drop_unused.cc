// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/drop_unused.h"

#include <algorithm>
#include <set>

#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {

std::optional<ir::Program> drop_unused(const ir::Program& program, ir::PassContext&) {
  std::set<std::string_view> needed;
  ir::Program out{program.level, program.name, {}};
  // Equations read only what stands before them, so one walk from the end finds everything needed.
  for (auto op = program.body.rbegin(); op != program.body.rend(); ++op) {
    if (const auto* output = op->get<Output>()) needed.insert(output->name.str());
    if (const auto* let = op->get<Let>()) {
      if (!needed.contains(let->name.str())) continue;
      for (ir::Name n : expr::tensors_read(let->body)) needed.insert(n.str());
    }
    out.body.push_back(*op);
  }
  std::reverse(out.body.begin(), out.body.end());
  return out;
}

}  // namespace nautilus::spec
