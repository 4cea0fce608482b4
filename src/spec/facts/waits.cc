// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/waits.h"

#include "spec/equations.h"

namespace nautilus::spec {

bool waits_for(expr::Expr e, const std::vector<expr::Expr>& extents, const Equations& equations) {
  bool found = false;
  std::unordered_set<ir::Name> seen;
  auto visit = [&](auto& self, expr::Expr x) -> void {
    for (ir::Name n : expr::tensors_read(x)) {
      const auto it = equations.find(n);
      if (found || it == equations.end() || !seen.insert(n).second) continue;
      const expr::Expr body = it->second.body;
      if (body.op() == expr::Op::Reduce && body.axis_count() == extents.size()) {
        bool is_alike = true;
        for (size_t k = 0; k < extents.size(); ++k) is_alike &= body.extent(k) == extents[k];
        found |= is_alike;
      }
      self(self, body);
    }
  };
  visit(visit, e);
  return found;
}

std::unordered_set<ir::Name> waiting_tensors(const ir::Program& program) {
  std::unordered_set<ir::Name> out;
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) continue;
    bool is_waiting = expr::has_reduce(let->body);
    for (ir::Name name : expr::tensors_read(let->body)) is_waiting |= out.contains(name);
    if (is_waiting) out.insert(let->name);
  }
  return out;
}

}  // namespace nautilus::spec
