// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/hoist_rows.h"

#include "expr/walk.h"
#include "ir/decl.h"
#include "matile/passes/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

class RowHoister {
 public:
  RowHoister(const Role& role, bool is_exact, Names& taken, expr::ExprPool& pool)
      : role_(role),
        is_exact_(is_exact),
        taken_(taken),
        pool_(pool),
        tiles_(declared_tiles(role)) {}

  Role run() {
    Role out = role_;
    const ir::Block body = map_blocks(role_.body, [&](ir::Block block) {
      ir::Block ops;
      for (Op& op : block) {
        const auto* set = op.get<Set>();
        const auto target = set ? tiles_.find(set->target.str()) : tiles_.end();
        if (target == tiles_.end() || target->second.spread != Spread::Acc) {
          ops.push_back(std::move(op));
          continue;
        }
        hoisted_.clear();
        Set changed = *set;
        changed.value = rewritten(set->value, set->axes, ops);
        ops.push_back(ir::make(std::move(changed), op.span()));
      }
      return ops;
    });
    out.body.clear();
    for (const Op& op : body) {
      if (op.is<Each>()) {
        for (const Tile& t : made_) out.body.push_back(ir::make(t));
      }
      out.body.push_back(op);
    }
    return out;
  }

 private:
  // Depends on the row alone, through at least one tile of rows.
  bool is_row(Expr e, const ir::Axes& axes) const {
    if (e.dtype() != DType::F32 || expr::depends_on(e, pool_.index(axes[1].name))) return false;
    bool ok = true;
    bool reads = false;
    expr::for_each(e, [&](Expr x) {
      if (x.op() == EK::Reduce) ok = false;
      if (x.op() != EK::Read) return;
      const auto it = tiles_.find(x.name().str());
      ok &= it != tiles_.end() && it->second.spread == Spread::Row && x.args().size() == 1 &&
            x[0] == pool_.index(axes[0].name);
      reads = true;
    });
    return ok && reads;
  }

  Expr hoist(Expr e, const ir::Axes& axes, ir::Block& out) {
    const Expr index[] = {pool_.index(axes[0].name)};
    const auto known = hoisted_.find(e);
    if (known != hoisted_.end()) return pool_.read(known->second, DType::F32, index);
    const std::string base(expr::tensors_read(e)[0].str());
    Tile tile{
        fresh_name(base + "_row", taken_, pool_), {DType::F32, {axes[0].extent}}, Spread::Row, {}};
    made_.push_back(tile);
    hoisted_.emplace(e, tile.name);
    out.push_back(ir::make(Set{tile.name, {axes[0]}, e}));
    return pool_.read(tile.name, DType::F32, index);
  }

  Expr rewritten(Expr e, const ir::Axes& axes, ir::Block& out) {
    if (e.args().empty() || e.op() == EK::Read || e.op() == EK::Reduce) return e;
    if (is_row(e, axes)) return hoist(e, axes, out);
    if (e.op() == EK::Div && !is_exact_ && is_row(e[1], axes)) {
      const Expr inverse = pool_.binary(EK::Div, pool_.floating(1.0, DType::F32), e[1]);
      return pool_.binary(EK::Mul, rewritten(e[0], axes, out), hoist(inverse, axes, out));
    }
    std::vector<Expr> args;
    for (Expr a : e.args()) args.push_back(rewritten(a, axes, out));
    return pool_.with_args(e, args);
  }

  const Role& role_;
  bool is_exact_;
  Names& taken_;
  expr::ExprPool& pool_;
  std::map<std::string, Tile, std::less<>> tiles_;
  std::vector<Tile> made_;
  std::unordered_map<Expr, ir::Name> hoisted_;  // of the op that is rewritten
};

}  // namespace

std::optional<ir::Program> hoist_rows(const ir::Program& program, ir::PassContext& context) {
  Names taken = names_of(program);
  const bool is_exact = ir::numerics_of(program).rounding == ir::Rounding::Exact;
  return map_nests(program, [&](const Kernel&, const Role& role) {
    return std::optional(RowHoister(role, is_exact, taken, context.pool).run());
  });
}

}  // namespace nautilus::matile
