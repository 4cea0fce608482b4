// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/drop_unused.h"

#include <unordered_map>
#include <unordered_set>

#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {

std::optional<ir::Program> drop_unused(const ir::Program& program, ir::PassContext&) {
  std::unordered_map<ir::Name, const Let*> equations;
  for (const ir::Op& op : program.body) {
    if (const auto* let = op.get<Let>()) equations.emplace(let->name, let);
  }
  std::unordered_set<ir::Name> needed;
  std::vector<ir::Name> open = outputs(program);
  while (!open.empty()) {
    const ir::Name name = open.back();
    open.pop_back();
    if (!needed.insert(name).second) continue;
    const auto it = equations.find(name);
    if (it == equations.end()) continue;
    for (ir::Name n : expr::tensors_read(it->second->body)) open.push_back(n);
  }
  ir::Program out{program.level, program.name, {}};
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    const auto* state = op.get<State>();
    if (let && !needed.contains(let->name)) continue;
    if (state && !needed.contains(state->name)) continue;
    out.body.push_back(op);
  }
  return out;
}

}  // namespace nautilus::spec
