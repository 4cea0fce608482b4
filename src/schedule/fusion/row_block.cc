// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/row_block.h"

#include "expr/bounds/quotient.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::Op;

Expr row_block(const Fusion& fusion, Expr row, expr::Facts& facts, expr::ExprPool& pool) {
  Expr block;
  bool is_clear = true;
  for (const Member& m : fusion.members) {
    expr::for_each(m.value, [&](Expr e) {
      const bool is_use = e.op() == Op::FloorDiv || e.op() == Op::Mod;
      if (!is_use || !expr::depends_on(e, row)) return;
      const bool is_plain = e[0] == row && (e[1].op() == Op::IntConst || e[1].op() == Op::Var) &&
                            !fusion.extents.contains(e[1]);
      if (!is_plain || (block && block != e[1])) is_clear = false;
      if (is_plain) block = e[1];
    });
  }
  if (!is_clear || !block || block.is_int(1)) return {};
  const auto holds = [&](Op op, int64_t n) {
    return facts.prove(pool.binary(op, block, pool.integer(n))) == expr::Truth::True;
  };
  const bool fits = holds(Op::Ge, 1) && holds(Op::Le, fusion.target->matrix.rows) &&
                    expr::exact_quotient(pool, fusion.extents.at(row), block);
  return fits ? block : Expr();
}

}  // namespace nautilus::schedule
