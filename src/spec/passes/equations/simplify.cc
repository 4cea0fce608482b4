// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/simplify.h"

#include "expr/rules/simplify.h"
#include "ir/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {

std::optional<ir::Program> simplify(const ir::Program& program, ir::PassContext& context) {
  expr::Simplifier simplifier(context.pool, context.disabled_rules);
  const expr::Facts facts = ir::facts_of(program, context.pool);
  ir::Program out{program.level, program.name, {}};
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) {
      // Declarations are what bounds are proven from, so they are simplified without them.
      out.body.push_back(ir::map_exprs(op, [&](ir::Expr e) { return simplifier.simplify(e); }));
      continue;
    }
    expr::Facts inner = facts;
    Let copy = *let;
    for (ir::Axis& a : copy.axes) {
      a.extent = simplifier.simplify(a.extent);
      inner.add_axis(context.pool.index(a.name), a.extent);
    }
    copy.body = simplifier.simplify(copy.body, &inner);
    out.body.push_back(ir::make(std::move(copy), op.span()));
  }
  return out;
}

}  // namespace nautilus::spec
