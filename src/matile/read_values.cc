// SPDX-License-Identifier: Apache-2.0
#include "matile/read_values.h"

#include <algorithm>
#include <unordered_set>

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::matile {

bool reads_by_values(const Points& points) {
  std::unordered_set<ir::Name> values;
  ir::for_each_op(points.body, [&](const ir::Op& op) {
    if (const auto* v = op.get<Value>()) values.insert(v->name);
    if (const auto* l = op.get<Let>()) values.insert(l->name);
  });
  const auto has_value = [&](ir::Expr e) {
    const auto vars = expr::free_vars(e);
    return std::ranges::any_of(vars, [&](ir::Expr v) { return values.contains(v.name()); });
  };
  const auto has_read = [](ir::Expr e) { return !expr::tensors_read(e).empty(); };
  bool found = false;
  const auto look_at = [&](ir::Expr e) {
    if (e.op() == expr::Op::Read) found |= std::ranges::any_of(e.args(), has_value);
    if (e.op() == expr::Op::Select) found |= has_value(e[0]) && (has_read(e[1]) || has_read(e[2]));
    if (e.op() == expr::Op::And) found |= has_value(e[0]) && has_read(e[1]);
  };
  for (const ir::Op& op : points.body)
    ir::for_each_expr(op, [&](ir::Expr root) { expr::for_each(root, look_at); });
  return found;
}

}  // namespace nautilus::matile
