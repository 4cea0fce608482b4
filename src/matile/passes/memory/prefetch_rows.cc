// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/memory/prefetch_rows.h"

#include <algorithm>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/machine.h"
#include "ir/target_of.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

// The columns of a row that a role loads: all of them by its one group, or by each of its groups as
// many as the tile has, `X[t, 4096 * w + j]`.
struct RowColumns {
  const Role& role;
  expr::ExprPool& pool;

  int64_t groups() const { return role.count.value_or(1); }

  Expr at(const ir::Axis& tile) const {
    const Expr column = pool.index(tile.name);
    if (groups() == 1) return column;
    const Expr first = pool.binary(EK::Mul, tile.extent, pool.index(role.index));
    return pool.binary(EK::Add, first, column);
  }
  // Whether the value is the same in all of a row.
  bool is_of_row(Expr e, const ir::Axis& tile) const {
    return !expr::depends_on(e, pool.index(tile.name)) &&
           (groups() == 1 || !expr::depends_on(e, pool.index(role.index)));
  }
};

// The number of elements of a load of a whole row; nothing for other loads.
Expr row_elements(const Load& load, const RowColumns& columns) {
  if (load.axes.size() != 1 || load.reuse == Reuse::Often) return {};
  const ir::Axis& tile = load.axes[0];
  const Expr column = columns.at(tile);
  const auto& indices = load.value.args();
  if (indices.empty() || indices.back() != column) return {};
  for (size_t k = 0; k + 1 < indices.size(); ++k) {
    if (!columns.is_of_row(indices[k], tile)) return {};
  }
  if (!load.condition) return columns.pool.integer(columns.groups() * tile.extent.integer());
  const Expr c = load.condition;
  const bool is_limit = c.op() == EK::Lt && c[0] == column && columns.is_of_row(c[1], tile);
  return is_limit ? c[1] : Expr();
}

// The rows that the CTAs of a kernel load at once.
struct RowLoads {
  std::vector<std::pair<const Load*, Expr>> loads;  // with their numbers of elements
  size_t first = 0;                                 // place of the first
  int64_t bytes = 0;                                // of all of them
};

RowLoads row_loads(const Each& each, const Role& role, expr::ExprPool& pool) {
  const auto declared = declared_tiles(role);
  const RowColumns columns{role, pool};
  RowLoads out;
  out.first = each.body.size();
  for (size_t k = 0; k < each.body.size(); ++k) {
    const auto* load = each.body[k].get<Load>();
    const Expr count = load ? row_elements(*load, columns) : Expr();
    if (!count || declared.find(load->target.str())->second.by.value_or(0) < 2) continue;
    out.loads.emplace_back(load, count);
    out.first = std::min(out.first, k);
    out.bytes += columns.groups() * load->axes[0].extent.integer() * bytes(load->value.dtype());
  }
  return out;
}

// Several groups of threads leave room for fewer rows in flight.
int64_t by_rule(const RowLoads& rows, int64_t groups, const target::Rows& choice) {
  const int64_t most = groups > 1 ? choice.ahead_row_of_groups : choice.ahead_row;
  return rows.bytes > most ? 0 : choice.ahead_bytes / rows.bytes;
}

// The tiles of a kernel that has one role and no rings; null if it is of another kind.
const Tiles* tiles_of_rows(const Kernel& kernel) {
  const Tiles* tiles = nullptr;
  int roles = 0;
  for (const Op& op : kernel.body) {
    if (const auto* t = op.get<Tiles>()) tiles = t;
    roles += op.is<Role>();
    if (op.is<Ring>()) return nullptr;
  }
  return roles == 1 && tiles && tiles->source == TileSource::Static ? tiles : nullptr;
}

class Prefetcher {
 public:
  Prefetcher(Expr multiprocessors, const target::Rows& rows, expr::ExprPool& pool)
      : sms_(multiprocessors), choice_(rows), pool_(pool) {}

  Kernel run(const Kernel& kernel) {
    const Tiles* tiles = tiles_of_rows(kernel);
    if (!tiles) return kernel;
    Kernel out = kernel;
    asked_.reset();
    for (const Op& line : decision::take<decision::Ahead>(out.body))
      asked_ = line.as<decision::Ahead>().rows;
    for (Op& op : out.body) {
      const auto* role = op.get<Role>();
      if (!role || role->unit != RoleUnit::Groups) continue;
      Role changed = *role;
      for (Op& inner : changed.body) {
        const auto* each = inner.get<Each>();
        if (!each || each->alternate || each->lanes) continue;
        Each walked = *each;
        walked.body = with_prefetches(*each, *tiles, *role);
        inner = ir::make(std::move(walked), inner.span());
      }
      op = ir::make(std::move(changed), op.span());
    }
    return out;
  }

  bool has_any() const { return has_any_; }

 private:
  ir::Block with_prefetches(const Each& each, const Tiles& tiles, const Role& role) {
    const RowLoads rows = row_loads(each, role, pool_);
    if (rows.loads.empty()) return each.body;
    const int64_t groups = role.count.value_or(1);
    const int64_t ahead = asked_ ? *asked_ : by_rule(rows, groups, choice_);
    if (ahead == 0) return each.body;
    expr::Substitution lets;
    for (const Op& op : each.body) {
      if (const auto* let = op.get<Let>())
        lets.emplace(pool_.index(let->name), expr::substitute(pool_, let->value, lets));
    }
    const Expr var = pool_.index(each.var);
    const Expr later =
        pool_.binary(EK::Add, var, pool_.binary(EK::Mul, pool_.integer(ahead), sms_));
    // One of the groups asks for all of the row.
    Expr condition = pool_.binary(EK::Lt, later, tiles.count);
    if (groups > 1) {
      const Expr is_first = pool_.binary(EK::Eq, pool_.index(role.index), pool_.integer(0));
      condition = pool_.binary(EK::And, is_first, condition);
    }
    ir::Block out(each.body.begin(), each.body.begin() + static_cast<long>(rows.first));
    for (const auto& [load, count] : rows.loads) {
      std::vector<Expr> at;
      for (Expr e : load->value.args())
        at.push_back(expr::substitute(pool_, expr::substitute(pool_, e, lets), {{var, later}}));
      at.back() = pool_.integer(0);
      out.push_back(ir::make(
          Prefetch{pool_.read(load->value.name(), load->value.dtype(), at), count, condition}));
    }
    out.insert(out.end(), each.body.begin() + static_cast<long>(rows.first), each.body.end());
    has_any_ = true;
    return out;
  }

  Expr sms_;
  const target::Rows& choice_;
  expr::ExprPool& pool_;
  ir::OptionalInt asked_;
  bool has_any_ = false;
};

}  // namespace

std::optional<int64_t> usual_rows_ahead(const Kernel& kernel, const target::Rows& rows,
                                        expr::ExprPool& pool) {
  if (!tiles_of_rows(kernel)) return std::nullopt;
  for (const Op& op : kernel.body) {
    const auto* role = op.get<Role>();
    if (!role || role->unit != RoleUnit::Groups) continue;
    for (const Op& inner : role->body) {
      const auto* each = inner.get<Each>();
      if (!each || each->alternate || each->lanes) continue;
      const RowLoads loads = row_loads(*each, *role, pool);
      if (!loads.loads.empty()) return by_rule(loads, role->count.value_or(1), rows);
    }
  }
  return std::nullopt;
}

std::optional<ir::Program> prefetch_rows(const ir::Program& program, ir::PassContext& context) {
  const ir::Name machine = ir::machine_name(program, context.pool);
  Prefetcher prefetcher(context.pool.index(machine), ir::target_of(program).rows, context.pool);
  auto out = map_kernels(program, KernelForm::Final,
                         [&](const Kernel& k) { return std::optional(prefetcher.run(k)); });
  if (!out || !prefetcher.has_any()) return out;
  const bool has_machine = std::any_of(out->body.begin(), out->body.end(),
                                       [](const Op& op) { return op.is<ir::Machine>(); });
  if (has_machine) return out;
  // Behind the tensors, before the plan's own sizes.
  const auto at = std::find_if(out->body.begin(), out->body.end(), [](const Op& op) {
    return op.is<Let>() || op.is<Map>() || op.is<Kernel>();
  });
  out->body.insert(at, ir::make(ir::Machine{machine}));
  return out;
}

}  // namespace nautilus::matile
