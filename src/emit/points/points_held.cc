// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_held.h"

#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/each_point.h"
#include "emit/points/points_lines.h"
#include "emit/points/points_loops.h"
#include "emit/points/points_parts.h"
#include "emit/points/points_statements.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/windows.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using EK = expr::Op;

// The turn of all of them; no name of a program.
constexpr std::string_view kTurn = "turn of loops";

// The number of turns; null if no loop has them.
Expr held_turns(const ir::Block& ops) {
  for (const ir::Op& op : ops) {
    const auto* l = op.get<matile::Loop>();
    if (l && matile::is_held_loop(*l)) return l->to;
  }
  return {};
}

// What a turn of the loop reads whatever happens, at places that are known before it: as elements
// of turn `kTurn`, and as they stand.
std::map<Expr, Expr, expr::ByContent> reads_of_turn(const PointsScope& scope,
                                                    const matile::Loop& l) {
  NameSet defined;
  ir::for_each_op(l.body, [&](const ir::Op& op) {
    if (const auto* let = op.get<matile::Let>()) defined.emplace(let->name.str());
    if (const auto* inner = op.get<matile::Loop>()) defined.emplace(inner->var.str());
  });
  const Expr var = scope.pool.index(l.var);
  std::map<Expr, Expr, expr::ByContent> out;
  const auto look = [&](Expr value) {
    const auto always = evaluated_always(value);
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read || !always.contains(e.node()) || !expr::depends_on(e, var)) return;
      const bool is_number = expr::has_vectors(e.dtype());
      const bool is_known = std::ranges::all_of(
          e.args(), [&](Expr index) { return is_known_before(scope, index, defined); });
      if (!is_number || !is_known || scope.written.contains(e.name().str())) return;
      out.emplace(expr::substitute(scope.pool, e, {{var, scope.pool.index(kTurn)}}), e);
    });
  };
  for (const ir::Op& op : l.body) {
    if (const auto* a = op.get<matile::Assign>()) look(a->value);
    if (const auto* let = op.get<matile::Let>()) look(let->value);
    if (const auto* w = op.get<matile::Write>()) look(w->value);
  }
  return out;
}

void open_turns(PointsScope& scope, const std::string& turns) {
  scope.out.open("UNROLL for (int turn = 0; turn < {}; ++turn) {{", scope.grid.held);
  scope.out.line("if (turn >= {}) break;", turns);
}

// Loads what at least two of the loops read.
void load_held(PointsScope& scope, const ir::Block& ops) {
  const PointsGrid& grid = scope.grid;
  std::map<Expr, int, expr::ByContent> uses;
  for (const ir::Op& op : ops) {
    const auto* l = op.get<matile::Loop>();
    if (!l || !matile::is_held_loop(*l)) continue;
    for (const auto& read : reads_of_turn(scope, *l)) ++uses[read.first];
  }
  std::erase_if(uses, [](const auto& use) { return use.second < 2; });
  const std::string each = grid.has_several() ? fmt::format("[{}]", grid.points_per_thread) : "";
  for (const auto& use : uses) {
    const std::string name = scope.fresh("held");
    scope.out.line("float {}[{}]{};", name, grid.held, each);
    scope.held.arrays.emplace(use.first, name);
  }
  open_turns(scope, scope.text(held_turns(ops)));
  scope.locals[std::string(kTurn)] = "turn";
  for (const auto& [read, name] : scope.held.arrays) {
    if (has_line(scope, read.name(), read.args()) &&
        is_whole_line(scope, scope.grid.last, read.name(), read.args())) {
      scope.out.line("load_whole_{}({}[turn], p.{}, {});", expr::name(read.dtype()), name,
                     identifier(read.name().str()), scope.offset(read.name(), read.args()));
      continue;
    }
    const EachPoint point(scope);
    scope.out.line("{}[turn]{} = {};", name, grid.has_several() ? "[beside]" : "",
                   scope.text(read));
  }
  scope.locals.erase(std::string(kTurn));
  scope.out.close();
}

}  // namespace

void write_held(PointsScope& scope, const ir::Block& ops) {
  scope.out.open("if ({} <= {}) {{", scope.text(held_turns(ops)), scope.grid.held);
  load_held(scope, ops);
  scope.held.is_holding = true;
  write_block(scope, ops);
  scope.held.is_holding = false;
  scope.held.arrays.clear();
  scope.out.open_else();
  write_block(scope, ops);
  scope.out.close();
}

void write_held_loop(PointsScope& scope, const matile::Loop& l) {
  scope.held.is_holding = false;  // loops in it are as they are
  const OwnNames own(scope);
  const LoopText loop = begin_loop(scope, l);
  open_turns(scope, loop.to);
  scope.out.line("const long long {} = turn;", loop.var);
  for (const auto& [at_turn, read] : reads_of_turn(scope, l)) {
    const auto it = scope.held.arrays.find(at_turn);
    if (it != scope.held.arrays.end())
      scope.held.names.emplace(
          read, it->second + (scope.grid.has_several() ? "[turn][beside]" : "[turn]"));
  }
  write_block(scope, l.body);
  scope.held.names.clear();
  scope.out.close();
  scope.held.is_holding = true;
}

}  // namespace nautilus::emit
