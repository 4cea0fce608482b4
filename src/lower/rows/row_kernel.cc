// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_kernel.h"

#include <fmt/format.h>

#include <deque>

#include "lower/points/point_counts.h"
#include "lower/rows/row_lines.h"
#include "lower/rows/row_lowering.h"
#include "matile/passes/memory/prefetch_rows.h"

namespace nautilus::lower {

using expr::Expr;
using EK = expr::Op;

std::optional<ir::Block> lower_rows(const RowContext& rows,
                                    const std::vector<ir::Block>& alternatives,
                                    const ir::Block& members, ir::PassContext& context) {
  std::vector<RowShape> shapes;
  std::deque<RowLines> lines;
  for (size_t k = 0; k < alternatives.size(); ++k) {
    lines.emplace_back(alternatives[k], k == 0, rows, context);
    const auto shape = lines[k].read();
    if (!shape) return std::nullopt;
    shapes.push_back(*shape);
  }
  ir::Block out;
  size_t unreached = 0;
  const auto launched = row_alternatives(shapes, rows, out, &unreached);
  if (!launched) {
    lines[unreached].refuse("no rows are left for it: alternatives before it take them");
    return std::nullopt;
  }
  const std::string stem = row_stem(rows.group);
  ir::Block launches;
  ir::Name single;  // takes tensors of any alignment; the first of the list
  for (size_t k = 0; k < shapes.size(); ++k) {
    const RowAlternative& v = (*launched)[k];
    const ir::Name name = rows.names.make(fmt::format("{}_rows{}", stem, v.suffix));
    RowLowering lowering(rows, v, name, lines[k]);
    matile::Kernel kernel = lowering.run();
    const bool has_rows = matile::usual_rows_ahead(kernel, rows.choice(), rows.pool).has_value();
    if (!lines[k].end(v.shape, has_rows)) return std::nullopt;
    ir::Block later = lines[k].read_last();
    if (v.shape.ahead) later.push_back(ir::make(decision::Ahead{*v.shape.ahead, {}}));
    kernel.body = decision::with_lines(std::move(kernel.body), later);
    out.push_back(ir::make(std::move(kernel)));
    ir::Block decided = k == 0 ? members : ir::Block();
    decided.insert(decided.end(), lines[k].decided().begin(), lines[k].decided().end());
    decision::note_kernel(rows.group.statements.back().target, decision::Form::Rows, decided, name,
                          context);
    Expr all = lowering.count();
    if (v.shape.lanes > 0) all = quotient_up(all, v.shape.rows_of_cta(rows.choice()), rows.pool);
    if (v.shape.ctas > 1) all = rows.pool.binary(EK::Mul, rows.pool.integer(v.shape.ctas), all);
    const Expr grid =
        v.condition.is_true() ? all : rows.pool.select(v.condition, all, rows.pool.integer(0));
    const bool is_never = v.condition.op() == EK::BoolConst && !v.condition.is_true();
    if (!is_never) launches.push_back(ir::make(matile::Launch{name, grid, single}));
    if (!single) single = name;
  }
  for (ir::Op& op : launches) out.push_back(std::move(op));
  return out;
}

}  // namespace nautilus::lower
