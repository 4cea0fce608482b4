// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_nest.h"

#include <fmt/format.h>

namespace nautilus::lower {

using expr::Expr;
using EK = expr::Op;

ir::Name TileNames::define_scalar(ir::Name name, expr::DType dtype) {
  const ir::Name made = names_.make(name.str());
  scalars_.insert_or_assign(pool_.var(name, dtype), pool_.var(made, dtype));
  return made;
}

// The read in `f32(x[j])`, if x lies in registers as f32.
Expr TileNames::widened(Expr e) {
  if (e.op() != EK::Cast || e.dtype() != expr::DType::F32 || e[0].op() != EK::Read) return {};
  const TileValue* tile = find(e[0].name());
  const bool is_wide = tile && tile->kind == TileValue::Kind::Register && tile->row_piece_of &&
                       tile->type.dtype == expr::DType::F32;
  return is_wide ? e[0] : Expr();
}

Expr TileNames::written(Expr e, const expr::Substitution& axes, std::string* why) {
  std::unordered_map<Expr, Expr> memo;
  const auto go = [&](const auto& self, Expr x) -> Expr {
    if (const auto it = memo.find(x); it != memo.end()) return it->second;
    if (x.op() == EK::Var) {
      const auto axis = axes.find(x);
      return axis != axes.end() ? axis->second : scalar(x);
    }
    if (const Expr wide = widened(x); wide) {
      const Expr index = self(self, wide[0]);
      if (!index) return {};
      const Expr y = pool_.read(find(wide.name())->name, expr::DType::F32, {&index, 1});
      memo.emplace(x, y);
      return y;
    }
    std::vector<Expr> args;
    for (Expr a : x.args()) {
      const Expr b = self(self, a);
      if (!b) return {};
      args.push_back(b);
    }
    Expr y;
    const TileValue* tile = x.op() == EK::Read ? find(x.name()) : nullptr;
    if (!tile) {
      y = args.empty() ? x : pool_.with_args(x, args);
    } else if (tile->kind == TileValue::Kind::Register) {
      // A piece of a row lies in registers as f32.
      const bool is_wide = tile->row_piece_of && tile->type.dtype != x.dtype();
      y = pool_.read(tile->name, is_wide ? tile->type.dtype : x.dtype(), args);
      if (is_wide) y = pool_.cast(x.dtype(), y);
    } else if (tile->kind == TileValue::Kind::Vote) {
      const bool is_row_group = args.size() == 1 && args[0].op() == EK::FloorDiv &&
                                args[0][0].op() == EK::Var && args[0][1].is_int(tile->rows);
      if (!is_row_group) {
        *why = fmt::format("`{}` is a condition of {} rows, it is used otherwise", x.name().str(),
                           tile->rows);
        return {};
      }
      y = pool_.var(tile->name, expr::DType::Bool);
    } else {
      expr::Substitution own;
      for (size_t k = 0; k < args.size(); ++k)
        own.emplace(pool_.index(tile->axes[k].name), args[k]);
      y = expr::substitute(pool_, tile->value, own);
      if (tile->condition) {
        const Expr other = tile->other ? tile->other : pool_.constant(0, y.dtype());
        y = pool_.select(expr::substitute(pool_, tile->condition, own), y, other);
      }
    }
    memo.emplace(x, y);
    return y;
  };
  return go(go, e);
}

}  // namespace nautilus::lower
