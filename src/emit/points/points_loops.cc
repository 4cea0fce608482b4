// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_loops.h"

#include "emit/points/points_held.h"
#include "emit/points/points_parts.h"
#include "emit/points/points_patches.h"
#include "emit/points/points_statements.h"
#include "emit/points/points_windows.h"
#include "emit/typed_expression.h"
#include "matile/loop_loads.h"
#include "matile/windows.h"

namespace nautilus::emit {
namespace {

using expr::Expr;

// Whether the loads of several turns can be under way together.
bool has_loads_of_turns(PointsScope& scope, const matile::Loop& l) {
  const PointsGrid& grid = scope.grid;
  if (grid.unroll <= 1 || grid.lanes > 1 || grid.has_several()) return false;
  return !matile::loads_ahead(l, scope.pool).empty() || matile::loads_of_turn(l, scope.pool) > 0;
}

// The loads of so many turns are under way together: those of turns that write are done before the
// first. What is left is as the compiler has it.
void write_turns_together(PointsScope& scope, const matile::Loop& l, const LoopText& loop) {
  Writer& out = scope.out;
  const int64_t turns = scope.grid.unroll;
  const std::string first = scope.fresh("first");
  const auto open_turn = [&] {
    out.open("UNROLL for (int more = 0; more < {}; ++more) {{", turns);
    out.line("const long long {} = {} + more;", loop.var, first);
  };
  out.line("long long {} = 0;", first);
  out.open("for (; {0} + {1} <= {2}; {0} += {1}) {{", first, turns, loop.to);
  ExprNames ahead;
  for (Expr e : matile::loads_ahead(l, scope.pool)) {
    const std::string name = scope.fresh("ahead");
    out.line("{} {}[{}];", carrier(e.dtype()), name, turns);
    ahead.emplace(e, name);
  }
  if (!ahead.empty()) {
    open_turn();
    scope.mode.is_ahead = true;
    for (const auto& [e, name] : ahead) out.line("{}[more] = {};", name, scope.text(e));
    scope.mode.is_ahead = false;
    out.close();
  }
  open_turn();
  for (const auto& [e, name] : ahead) scope.held.names.emplace(e, name + "[more]");
  scope.mode.is_ahead = ahead.empty();
  write_block(scope, l.body);
  scope.mode.is_ahead = false;
  if (!ahead.empty()) scope.held.names.clear();
  out.close();
  out.close();
  const std::string rest = scope.define(l.var);
  out.open("for (long long {0} = {1}; {0} < {2}; ++{0}) {{", rest, first, loop.to);
  write_block(scope, l.body);
  out.close();
}

}  // namespace

std::string LoopText::head() const {
  return fmt::format("for (long long {0} = {1}; {0} {2} {3}; {4}{0})", var, from,
                     is_up ? "<" : ">=", to, is_up ? "++" : "--");
}

LoopText begin_loop(PointsScope& scope, const matile::Loop& l) {
  LoopText out{.from = scope.text(l.from),
               .to = scope.text(l.to),
               .var = {},
               .is_up = l.direction == matile::Direction::Up};
  out.var = scope.define(l.var);
  if (matile::counts_from_zero(l)) scope.facts.add_axis(scope.pool.index(l.var), l.to);
  return out;
}

void write_loop(PointsScope& scope, const matile::Loop& l) {
  const PointsGrid& grid = scope.grid;
  const PointsMode& mode = scope.mode;
  if (grid.is_patch && mode.is_inside) return write_patch_loop(scope, l);
  if (grid.spread > 0 && mode.is_inside && mode.are_written_out && matile::is_window(l))
    return write_window(scope, l);
  if (scope.held.is_holding && matile::is_held_loop(l)) return write_held_loop(scope, l);
  const OwnNames own(scope);
  const LoopText loop = begin_loop(scope, l);
  if (grid.unroll > 1 && loop.is_up && is_over_parts(scope, l.to) && grid.lanes == 1)
    return write_parts(scope, {l.var, loop.from, loop.to}, l.body);
  if (has_loads_of_turns(scope, l)) return write_turns_together(scope, l, loop);
  const bool is_unrolled =
      (mode.is_inside || mode.is_near) && mode.are_written_out && matile::all_turns(l) > 0;
  scope.out.open("{}{} {{", is_unrolled ? "UNROLL " : "", loop.head());
  write_block(scope, l.body);
  scope.out.close();
}

}  // namespace nautilus::emit
