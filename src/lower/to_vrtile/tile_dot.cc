// SPDX-License-Identifier: Apache-2.0
#include "lower/to_vrtile/tile_dot.h"

#include <vector>

#include "expr/walk.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

bool is_zero(Expr e) { return (e.op() == EK::FloatConst && e.number() == 0) || e.is_int(0); }

class Splitter {
 public:
  Splitter(expr::ExprPool& pool, Expr row, Expr col, Expr depth)
      : pool_(pool), row_(row), col_(col), depth_(depth) {}

  std::optional<DotFactors> run(Expr value) {
    if (value.dtype() == expr::DType::Bool || !flatten(value)) return std::nullopt;
    if (rows_.empty() || cols_.empty()) return std::nullopt;
    rows_.insert(rows_.end(), depths_.begin(), depths_.end());
    Expr rows = product(rows_);
    Expr cols = product(cols_);
    bool is_guarded_twice = false;
    for (Expr g : guards_) {
      const bool has_row = expr::depends_on(g, row_);
      const bool has_col = expr::depends_on(g, col_);
      if (has_row && has_col) return std::nullopt;
      // Without either axis it guards both: 0 times what is not a number would not be 0.
      if (!has_col) rows = pool_.select(g, rows, pool_.constant(0, rows.dtype()));
      if (!has_row) cols = pool_.select(g, cols, pool_.constant(0, cols.dtype()));
      is_guarded_twice |= !has_row && !has_col;
    }
    return DotFactors{stored(rows), stored(cols), outer_.empty() ? Expr() : product(outer_),
                      is_guarded_twice};
  }

 private:
  // False if a factor has both row and column.
  bool flatten(Expr e) {
    if (e.op() == EK::Mul) return flatten(e[0]) && flatten(e[1]);
    const bool has_row = expr::depends_on(e, row_);
    const bool has_col = expr::depends_on(e, col_);
    if (e.op() == EK::Neg) {
      outer_.push_back(pool_.constant(-1, e.dtype()));
      return flatten(e[0]);
    }
    if (e.op() == EK::Select && is_zero(e[2]) && has_row && has_col) {
      guards_.push_back(e[0]);
      return flatten(e[1]);
    }
    if (has_row && has_col) return false;
    if (!expr::depends_on(e, depth_)) {
      outer_.push_back(e);
    } else {
      (has_row ? rows_ : has_col ? cols_ : depths_).push_back(e);
    }
    return true;
  }

  Expr product(const std::vector<Expr>& factors) {
    Expr out;
    for (Expr f : factors) out = out ? pool_.binary(EK::Mul, out, f) : f;
    return out;
  }

  // Without the conversion to the dtype of the sum, if the narrow dtype has every value; the
  // product converts its operands itself.
  Expr stored(Expr e) {
    if (e.op() == EK::Cast && expr::is_float(e[0].dtype()) == expr::is_float(e.dtype()) &&
        expr::holds_every_value(e.dtype(), e[0].dtype()))
      return e[0];
    if (e.op() == EK::Select && is_zero(e[2])) {
      const Expr inner = stored(e[1]);
      if (inner != e[1]) return pool_.select(e[0], inner, pool_.constant(0, inner.dtype()));
    }
    return e;
  }

  expr::ExprPool& pool_;
  Expr row_, col_, depth_;
  std::vector<Expr> rows_, cols_, depths_, outer_, guards_;
};

}  // namespace

std::optional<DotFactors> split_dot(expr::ExprPool& pool, Expr value, Expr row, Expr col,
                                    Expr depth) {
  return Splitter(pool, row, col, depth).run(value);
}

}  // namespace nautilus::lower
