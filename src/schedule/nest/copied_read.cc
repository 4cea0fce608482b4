// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/copied_read.h"

#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

// The factor of a variable in an index that is linear in it; nothing otherwise.
std::optional<int64_t> factor_in(Expr index, Expr var) {
  if (!expr::depends_on(index, var)) return 0;
  const auto poly = expr::Poly::of(index);
  const auto parts = poly ? poly->split(var) : std::nullopt;
  return parts ? parts->first.constant() : std::nullopt;
}

}  // namespace

CopiedRead copied_read(Expr read, const ir::Axes& axes, const Target& target,
                       expr::ExprPool& pool) {
  const bool is_held = expr::is_float(read.dtype()) &&
                       (expr::bytes(read.dtype()) == 2 || expr::bytes(read.dtype()) == 4);
  if (axes.size() != 2 || !is_held || read.args().empty()) return CopiedRead::No;
  const Expr row = pool.index(axes[0].name);
  const Expr column = pool.index(axes[1].name);
  const size_t last = read.args().size() - 1;
  int rows = 0;
  for (size_t k = 0; k <= last; ++k) {
    if (!expr::tensors_read(read[k]).empty()) return CopiedRead::No;
    const auto along_row = factor_in(read[k], row);
    const auto along_column = factor_in(read[k], column);
    if (!along_row || along_column != (k == last ? 1 : 0)) return CopiedRead::No;
    if (*along_row == 0) continue;
    if (*along_row != 1 || k == last) return CopiedRead::No;
    ++rows;
  }
  if (rows > 1) return CopiedRead::No;
  const int64_t columns = axes[1].extent.integer();
  const int64_t panel = target.copies.panel_columns();
  const int64_t panels = (columns + panel - 1) / panel * panel;
  if (rows == 0) return CopiedRead::RowPiece;
  return columns % target.matrix.depth == 0 && 2 * columns > panels ? CopiedRead::Box
                                                                    : CopiedRead::No;
}

}  // namespace nautilus::schedule
