// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_parts.h"

#include <algorithm>

#include "emit/points/points_statements.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using ir::Op;

// Text of what a turn of the loop adds to the place of an element, if the variable is an index
// of its own and the others are known before the loop; empty otherwise.
std::string step_of(const PointsScope& scope, Expr read, Expr var, const NameSet& defined) {
  const PointsGrid& grid = scope.grid;
  std::string step;
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr index = read.args()[k];
    if (!expr::depends_on(index, var)) {
      const bool is_last = grid.points_per_thread > 1 && expr::depends_on(index, grid.last);
      if (is_last ? index != grid.last : !is_known_before(scope, index, defined)) return "";
      continue;
    }
    if (index != var || !step.empty()) return "";
    step = scope.global(read.name()).step("1", k);
  }
  return step;
}

// Text of what the next point of a thread adds.
std::string next_of(const PointsScope& scope, Expr read) {
  std::string next;
  for (size_t k = 0; k < read.args().size(); ++k) {
    if (read.args()[k] == scope.grid.last)
      next += " + " + scope.global(read.name()).step("beside", k);
  }
  return next;
}

// Places of elements that a loop over parts walks over in equal steps: the place in its first
// turn and the step are computed once, in place of products of 64 bits in every turn.
void name_places(PointsScope& scope, ir::Name var, const ir::Block& body) {
  std::vector<Expr> reads;
  NameSet defined;
  for (const Op& op : body) {
    Expr value;
    if (const auto* a = op.get<matile::Assign>()) value = a->value;
    if (const auto* l = op.get<matile::Let>()) {
      value = l->value;
      defined.emplace(l->name.str());
    }
    if (!value) continue;
    expr::for_each(value, [&](Expr e) {
      if (e.op() == expr::Op::Read && std::find(reads.begin(), reads.end(), e) == reads.end())
        reads.push_back(e);
    });
  }
  for (Expr r : reads) {
    const std::string step = step_of(scope, r, scope.pool.index(var), defined);
    if (step.empty()) continue;
    const std::string next = scope.grid.points_per_thread > 1 ? next_of(scope, r) : "";
    const std::string at = scope.fresh("at");
    {
      const OtherText first(scope, var, "first");
      scope.out.line("const u64 {} = {};", at, scope.offset(r.name(), r.args()));
    }
    const std::string by = scope.fresh("step");
    scope.out.line("const u64 {} = {};", by, step);
    scope.part_places.emplace(r, fmt::format("{} + (u64)more * {}{}", at, by, next));
  }
}

}  // namespace

bool is_over_parts(const PointsScope& scope, Expr to) {
  return to.op() == expr::Op::Var && scope.plan_sizes.contains(to.name().str());
}

void write_parts(PointsScope& scope, const PartsLoop& loop, const ir::Block& body) {
  Writer& out = scope.out;
  const PointsGrid& grid = scope.grid;
  const int64_t ahead = grid.unroll * grid.lanes;
  const std::string var = scope.local(loop.var);
  out.open("for (long long first = {0}; first < {1}; first += {2}) {{", loop.from, loop.to, ahead);
  name_places(scope, loop.var, body);
  out.line("const int left = (int)({0} - first < {1} ? {0} - first : {1});", loop.to, ahead);
  out.open("UNROLL for (int more = 0; more < {}; more += {}) {{", ahead, grid.lanes);
  // One condition for each load: under a branch around several, turns would wait for each other.
  const bool is_flat =
      grid.points_per_thread > 1 &&
      std::none_of(body.begin(), body.end(), [](const Op& op) { return op.is<matile::Loop>(); });
  if (is_flat)
    scope.mode.turn = "more < left";
  else
    out.open("if (more < left) {{");
  out.line("const long long {} = first + more;", var);
  write_block(scope, body);
  scope.mode.turn.clear();
  if (!is_flat) out.close();
  out.close();
  out.close();
  scope.part_places.clear();
}

bool is_known_before(const PointsScope& scope, Expr index, const NameSet& defined) {
  bool is_known = expr::tensors_read(index).empty();
  expr::for_each(index, [&](Expr e) {
    if (e.op() != expr::Op::Var) return;
    is_known &= !defined.contains(e.name().str()) && !scope.dtypes.contains(e.name().str());
  });
  return is_known;
}

}  // namespace nautilus::emit
