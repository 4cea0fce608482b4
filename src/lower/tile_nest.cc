// SPDX-License-Identifier: Apache-2.0
#include "lower/tile_nest.h"

#include <fmt/format.h>

namespace nautilus::lower {

using expr::Expr;
using EK = expr::Op;

ir::Name TileNames::define_scalar(ir::Name name, expr::DType dtype) {
  const ir::Name made = names_.make(name.str());
  scalars_.insert_or_assign(pool_.var(name, dtype), pool_.var(made, dtype));
  return made;
}

Expr TileNames::written(Expr e, const expr::Substitution& axes, std::string* why) {
  std::unordered_map<Expr, Expr> memo;
  const auto go = [&](const auto& self, Expr x) -> Expr {
    if (const auto it = memo.find(x); it != memo.end()) return it->second;
    if (x.op() == EK::Var) {
      const auto axis = axes.find(x);
      return axis != axes.end() ? axis->second : scalar(x);
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
      y = pool_.read(tile->name, x.dtype(), args);
    } else if (tile->kind == TileValue::Kind::Vote) {
      const bool is_row_group = args.size() == 1 && args[0].op() == EK::FloorDiv &&
                                args[0][0].op() == EK::Var && args[0][1].is_int(16);
      if (!is_row_group) {
        *why = fmt::format("`{}` is a condition of 16 rows, it is used otherwise", x.name().str());
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
