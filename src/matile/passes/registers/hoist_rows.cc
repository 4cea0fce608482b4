// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/registers/hoist_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "decision/choice.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

class RowHoister {
 public:
  // `widths`: gets the columns of tiles that have work which depends on the column alone.
  RowHoister(const Role& role, bool is_exact, int64_t most_columns, std::set<int64_t>& widths,
             Names& taken, expr::ExprPool& pool)
      : role_(role),
        is_exact_(is_exact),
        most_columns_(most_columns),
        widths_(widths),
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
    for (const Op& op : map_blocks(body, [&](ir::Block b) { return lifted(std::move(b)); })) {
      if (op.is<Each>()) {
        for (const Tile& t : made_) out.body.push_back(ir::make(t));
      }
      out.body.push_back(op);
    }
    return out;
  }

 private:
  // Of the new tiles, those that are the same in all copies of an unrolled block go before it.
  ir::Block lifted(ir::Block block) const {
    ir::Block out;
    for (Op& op : block) {
      const auto* unroll = op.get<Unroll>();
      if (!unroll) {
        out.push_back(std::move(op));
        continue;
      }
      Unroll rest = *unroll;
      rest.body.clear();
      for (const Op& inner : unroll->body)
        (is_common(inner, *unroll) ? out : rest.body).push_back(inner);
      out.push_back(ir::make(std::move(rest), op.span()));
    }
    return out;
  }

  bool is_common(const Op& op, const Unroll& unroll) const {
    const auto* set = op.get<Set>();
    if (!set || std::none_of(made_.begin(), made_.end(),
                             [&](const Tile& t) { return t.name == set->target; }))
      return false;
    for (const ir::Axis& a : unroll.axes) {
      if (expr::depends_on(set->value, pool_.index(a.name))) return false;
    }
    const Names written = touched_by(unroll.body).writes;
    const auto read = expr::tensors_read(set->value);
    const auto has_let = [](const Op& o) { return o.is<Let>() || o.is<Vote>(); };
    return std::none_of(unroll.body.begin(), unroll.body.end(), has_let) &&
           std::none_of(read.begin(), read.end(),
                        [&](ir::Name n) { return written.contains(n.str()); });
  }

  // Depends on one axis alone, through at least one tile along it or elements of a tensor.
  bool is_along(Expr e, const ir::Axes& axes, size_t axis) const {
    if (e.dtype() != DType::F32 || expr::depends_on(e, pool_.index(axes[1 - axis].name)))
      return false;
    const Spread spread = axis == 0 ? Spread::Row : Spread::Col;
    bool ok = true;
    bool reads = false;
    expr::for_each(e, [&](Expr x) {
      if (x.op() == EK::Reduce) ok = false;
      if (x.op() != EK::Read) return;
      reads = true;
      const auto it = tiles_.find(x.name().str());
      ok &= it == tiles_.end() || (it->second.spread == spread && x.args().size() == 1 &&
                                   x[0] == pool_.index(axes[axis].name));
    });
    return ok && reads && expr::depends_on(e, pool_.index(axes[axis].name));
  }

  // The axis along which a value is worth a tile of its own; -1 if there is none. A thread has two
  // rows of 64, but a quarter of all columns.
  int axis_of(Expr e, const ir::Axes& axes) const {
    if (is_along(e, axes, 0)) return 0;
    if (!is_along(e, axes, 1)) return -1;
    const int64_t columns = axes[1].extent.integer();
    widths_.insert(columns);
    return columns <= most_columns_ ? 1 : -1;
  }

  Expr hoist(Expr e, const ir::Axes& axes, int axis, ir::Block& out) {
    const ir::Axis& along = axes[static_cast<size_t>(axis)];
    const Expr index[] = {pool_.index(along.name)};
    const auto known = hoisted_.find(e);
    if (known != hoisted_.end()) return pool_.read(known->second, DType::F32, index);
    const std::string base(expr::tensors_read(e)[0].str());
    Tile tile{fresh_name(base + (axis == 0 ? "_row" : "_col"), taken_, pool_),
              {DType::F32, {along.extent}},
              axis == 0 ? Spread::Row : Spread::Col,
              {}};
    made_.push_back(tile);
    hoisted_.emplace(e, tile.name);
    out.push_back(ir::make(Set{tile.name, {along}, e}));
    return pool_.read(tile.name, DType::F32, index);
  }

  bool reads_tensors(Expr e) const {
    const auto read = expr::tensors_read(e);
    return std::any_of(read.begin(), read.end(),
                       [&](ir::Name n) { return !tiles_.contains(n.str()); });
  }

  // `is_guarded`: under a condition that may keep elements of tensors from being read at all.
  Expr rewritten(Expr e, const ir::Axes& axes, ir::Block& out, bool is_guarded = false) {
    if (e.args().empty() || e.op() == EK::Reduce) return e;
    const bool is_tile = e.op() == EK::Read && tiles_.contains(e.name().str());
    if (is_tile) return e;
    const auto axis_if_safe = [&](Expr x) {
      return is_guarded && reads_tensors(x) ? -1 : axis_of(x, axes);
    };
    if (const int axis = axis_if_safe(e); axis >= 0) return hoist(e, axes, axis, out);
    if (e.op() == EK::Read) return e;
    if (e.op() == EK::Div && !is_exact_) {
      if (const int axis = axis_if_safe(e[1]); axis >= 0) {
        const Expr inverse = pool_.binary(EK::Div, pool_.floating(1.0, DType::F32), e[1]);
        return pool_.binary(EK::Mul, rewritten(e[0], axes, out, is_guarded),
                            hoist(inverse, axes, axis, out));
      }
    }
    std::vector<Expr> args;
    for (Expr a : e.args())
      args.push_back(rewritten(a, axes, out, is_guarded || e.op() == EK::Select));
    return pool_.with_args(e, args);
  }

  const Role& role_;
  bool is_exact_;
  int64_t most_columns_;  // of a value along columns
  std::set<int64_t>& widths_;
  Names& taken_;
  expr::ExprPool& pool_;
  std::map<std::string, Tile, std::less<>> tiles_;
  std::vector<Tile> made_;
  std::unordered_map<Expr, ir::Name> hoisted_;  // of the op that is rewritten
};

}  // namespace

namespace {

// What a limit comes to: the widest tile with such work that it lets through, or none.
int64_t reached(int64_t most, const std::set<int64_t>& widths) {
  const auto above = widths.upper_bound(most);
  return above == widths.begin() ? 0 : *std::prev(above);
}

}  // namespace

std::optional<ir::Program> hoist_rows(const ir::Program& program, ir::PassContext& context) {
  Names taken = names_of(program);
  const bool is_exact = ir::numerics_of(program).rounding == ir::Rounding::Exact;
  const int64_t columns = ir::target_of(program).tiles.hoisted_columns;
  decision::Choice<decision::Hoist> choice(context);
  return map_kernels(program, KernelForm::Nest, [&](const Kernel& kernel) -> std::optional<Kernel> {
    Kernel out = kernel;
    choice.begin(out.body);
    const int64_t most = choice.asked() ? choice.asked()->columns.value_or(-1) : columns;
    std::set<int64_t> widths;
    for (Op& op : out.body) {
      if (const auto* role = op.get<Role>())
        op = ir::make(RowHoister(*role, is_exact, most, widths, taken, context.pool).run(),
                      op.span());
    }
    // A line that says another number than its kernel comes to would have no effect.
    if (choice.asked() && !widths.empty() && most != reached(most, widths))
      choice.refuse(
          fmt::format("tiles with work that depends on the column alone have {} columns: "
                      "one of these, or 0",
                      fmt::join(widths, ", ")));
    if (!widths.empty()) choice.took({reached(most, widths), {}});
    if (!choice.end("no work of this kernel depends on the column alone")) return std::nullopt;
    return out;
  });
}

}  // namespace nautilus::matile
