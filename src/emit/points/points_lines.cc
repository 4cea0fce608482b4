// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_lines.h"

#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/each_point.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/target_of.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;

bool has_line_along(const PointsScope& scope, Expr axis, ir::Name tensor,
                    std::span<const Expr> indices) {
  if (indices.empty() || !expr::counts_along(indices.back(), axis)) return false;
  const GlobalTensor& global = scope.global(tensor);
  const DType dtype = global.type.dtype;
  return expr::has_vectors(dtype) && !global.is_scratch &&
         std::none_of(indices.begin(), indices.end() - 1,
                      [&](Expr index) { return expr::depends_on(index, axis); }) &&
         std::none_of(indices.begin(), indices.end(),
                      [&](Expr index) { return scope.has_numbers_of_points(index); });
}

bool is_size(const PointsScope& scope, Expr atom) {
  if (atom.op() != expr::Op::Var) return false;
  return std::any_of(scope.program.body.begin(), scope.program.body.end(), [&](const ir::Op& op) {
    const auto* dim = op.get<ir::Dim>();
    return dim && dim->name == atom.name();
  });
}

void load_line(PointsScope& scope, Expr r, const std::string& name) {
  scope.out.line("float {}[{}];", name, scope.grid.points_per_thread);
  const std::string at = scope.offset(r.name(), r.args());
  if (is_whole_line(scope, scope.grid.last, r.name(), r.args()))
    scope.out.line("load_whole_{}({}, p.{}, {});", expr::name(r.dtype()), name,
                   identifier(r.name().str()), at);
  else
    scope.out.line("load_line_{}({}, p.{}, {}, {}, exist);", expr::name(r.dtype()), name,
                   identifier(r.name().str()), at, apart(scope, r.name()));
}

// An element of both axes of the tile under a condition, and a number elsewhere.
bool is_guarded(const PointsScope& scope, Expr e) {
  return e.op() == expr::Op::Select && e[1].op() == expr::Op::Read && e[2].is_const() &&
         e.dtype() == DType::F32 && expr::depends_on(e[1], scope.grid.across) &&
         expr::depends_on(e[1], scope.grid.last);
}

// Whether another statement has loaded it; then it has that name.
bool is_kept(PointsScope& scope, Expr e) {
  const auto known = scope.kept_lines.find(e);
  if (known == scope.kept_lines.end()) return false;
  scope.named.emplace(e, known->second);
  return true;
}

void keep(PointsScope& scope, Expr e, const std::string& element) {
  scope.named.emplace(e, element);
  scope.kept_lines.emplace(e, element);
}

// Those of all points of a thread, once for all its statements.
void load_guarded(PointsScope& scope, Expr e) {
  if (is_kept(scope, e)) return;
  const std::string name = scope.fresh("line");
  scope.out.line("float {}[{}][{}];", name, scope.grid.points_across, scope.grid.points_per_thread);
  {
    const EachPoint each(scope);
    scope.out.line("{}[over][beside] = {};", name, scope.text(e));
  }
  keep(scope, e, name + "[over][beside]");
}

// Lines of all points of a thread that has some across the last axis: along whichever of the two
// axes the tensor lies.
void load_transposed(PointsScope& scope, Expr r) {
  const PointsGrid& grid = scope.grid;
  Writer& out = scope.out;
  if (is_kept(scope, r)) return;
  const bool is_transposed = has_line_along(scope, grid.across, r.name(), r.args());
  const std::string name = scope.fresh("line");
  if (!is_transposed && !expr::depends_on(r, grid.across)) {  // one for all lines
    load_line(scope, r, name);
    return keep(scope, r, name + "[beside]");
  }
  const ir::Name over = (is_transposed ? grid.last : grid.across).name();
  const std::string_view number = is_transposed ? "beside" : "over";
  const int64_t lines = is_transposed ? grid.points_per_thread : grid.points_across;
  out.line("float {}[{}][{}];", name, lines,
           is_transposed ? grid.points_across : grid.points_per_thread);
  out.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", number, lines);
  {
    const OtherText place(scope, over, fmt::format("({} + {})", scope.local(over), number));
    const std::string at = scope.offset(r.name(), r.args());
    const Expr along = is_transposed ? scope.grid.across : scope.grid.last;
    if (is_whole_line(scope, along, r.name(), r.args()))
      out.line("load_whole_{}({}[{}], p.{}, {});", expr::name(r.dtype()), name, number,
               identifier(r.name().str()), at);
    else
      out.line("if ({} < {}) load_line_{}({}[{}], p.{}, {}, {}, {});", number,
               is_transposed ? "exist" : "exist_across", expr::name(r.dtype()), name, number,
               identifier(r.name().str()), at, apart(scope, r.name()),
               is_transposed ? "exist_across" : "exist");
  }
  out.close();
  keep(scope, r, name + (is_transposed ? "[beside][over]" : "[over][beside]"));
}

void put_line(PointsScope& scope, const matile::Write& w, const std::string& name) {
  const std::string at = scope.offset(w.target, w.indices);
  if (is_whole_line(scope, scope.grid.last, w.target, w.indices))
    scope.out.line("store_whole_{}(p.{}, {}, {});", expr::name(w.value.dtype()),
                   identifier(w.target.str()), at, name);
  else
    scope.out.line("store_line_{}(p.{}, {}, {}, {}, exist);", expr::name(w.value.dtype()),
                   identifier(w.target.str()), at, name, apart(scope, w.target));
}

}  // namespace

bool has_line(const PointsScope& scope, ir::Name tensor, std::span<const Expr> indices) {
  return scope.grid.is_line && scope.mode.turn.empty() &&
         has_line_along(scope, scope.grid.last, tensor, indices);
}

std::optional<std::vector<Expr>> line_steps(const PointsScope& scope, Expr axis, ir::Name tensor,
                                            std::span<const Expr> indices) {
  const auto poly = expr::Poly::of(indices.back());
  const auto parts = poly ? poly->split(axis) : std::nullopt;
  if (!parts) return std::nullopt;
  const int64_t vector = ir::target_of(scope.program).memory.vector_bytes /
                         expr::bytes(scope.global(tensor).type.dtype);
  std::vector<Expr> out;
  for (const auto& [monomial, coefficient] : parts->second.terms()) {
    if (coefficient % vector == 0) continue;
    Expr step = scope.pool.integer(coefficient);
    bool has_size = false;
    for (Expr atom : monomial) {
      if (!is_size(scope, atom)) continue;
      step = scope.pool.binary(expr::Op::Mul, step, atom);
      has_size = true;
    }
    if (!has_size) return std::nullopt;
    out.push_back(step);
  }
  return out;
}

bool is_whole_line(const PointsScope& scope, Expr axis, ir::Name tensor,
                   std::span<const Expr> indices) {
  return scope.mode.are_lines_whole && line_steps(scope, axis, tensor, indices);
}

void load_lines(PointsScope& scope, Expr value) {
  const PointsGrid& grid = scope.grid;
  if (!grid.is_line) return;
  const auto always = evaluated_always(value);
  std::vector<Expr> reads;
  expr::for_each(value, [&](Expr e) {
    if (!always.contains(e.node())) return;
    if (grid.across && is_guarded(scope, e)) load_guarded(scope, e);
    if (e.op() != expr::Op::Read) return;
    const bool may_turn = grid.across && grid.spread == 0;
    if (has_line(scope, e.name(), e.args()) ||
        (may_turn && has_line_along(scope, grid.across, e.name(), e.args())))
      reads.push_back(e);
  });
  for (Expr r : reads) {
    const bool has_read = std::any_of(r.args().begin(), r.args().end(), [](Expr index) {
      return !expr::tensors_read(index).empty();
    });
    const bool is_known =
        scope.named.contains(r) || scope.part_places.contains(r) || scope.held.names.contains(r);
    if (is_known || has_read) continue;
    if (grid.across) {
      load_transposed(scope, r);
      continue;
    }
    const std::string name = scope.fresh("line");
    load_line(scope, r, name);
    scope.named.emplace(r, name + "[beside]");
  }
}

void store_line(PointsScope& scope, const matile::Write& w) {
  const std::string name = scope.fresh("line");
  const EachLine lines(scope);
  scope.out.line("float {}[{}];", name, scope.grid.points_per_thread);
  {
    const EachInLine points(scope);
    scope.name_shared(w.value);
    scope.out.line("{}[beside] = {};", name, scope.text(w.value));
  }
  put_line(scope, w, name);
}

std::string apart(const PointsScope& scope, ir::Name tensor) {
  return scope.global(tensor).strides.back();
}

}  // namespace nautilus::emit
