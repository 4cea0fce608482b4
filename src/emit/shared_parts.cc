// SPDX-License-Identifier: Apache-2.0
#include "emit/shared_parts.h"

#include <map>

#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::Expr;

void reach(Expr e, std::set<const expr::Node*>& always) {
  if (!always.insert(e.node()).second) return;
  const bool is_lazy =
      e.op() == expr::Op::Select || e.op() == expr::Op::And || e.op() == expr::Op::Or;
  for (size_t i = 0; i < e.args().size() && !(is_lazy && i > 0); ++i) reach(e[i], always);
}

}  // namespace

std::vector<Expr> shared_parts(Expr root, uint32_t worth) {
  std::map<Expr, int, expr::ByContent> uses;
  std::vector<Expr> order;
  const auto always = evaluated_always(root);
  expr::for_each(root, [&](Expr e) {
    if (!uses.contains(e)) order.push_back(e);
    uses[e] += 0;
    for (Expr a : e.args()) ++uses[a];
  });
  ++uses[root];
  std::erase_if(order, [&](Expr e) {
    const bool is_worth = e.op() == expr::Op::Read || e.tree_size() >= worth;
    return uses[e] < 2 || !is_worth ||
           (!always.contains(e.node()) && !expr::tensors_read(e).empty());
  });
  return order;
}

std::set<const expr::Node*> evaluated_always(Expr e) {
  std::set<const expr::Node*> out;
  reach(e, out);
  return out;
}

}  // namespace nautilus::emit
