// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_statements.h"

#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/each_point.h"
#include "emit/points/points_inside.h"
#include "emit/points/points_lines.h"
#include "emit/points/points_loops.h"
#include "emit/points/points_own.h"
#include "emit/points/points_parts.h"
#include "emit/points/points_patches.h"
#include "emit/points/points_sort.h"
#include "emit/points/points_walks.h"
#include "emit/points/points_windows.h"
#include "emit/typed_expression.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;

// A number gets its value, for each point.
void assign_each(PointsScope& scope, const std::string& own, Expr value) {
  PointsMode& mode = scope.mode;
  mode.are_whole = mode.is_inside || (mode.is_near && is_guarded_always(value));
  {
    const EachPoint each(scope);
    scope.name_shared(value);
    scope.out.line("{} = {};", own, scope.text(value));
  }
  mode.are_whole = mode.is_inside;
}

// Whether all points of a thread with a line of them have the same value.
bool is_of_line(const PointsScope& scope, Expr value) {
  const PointsGrid& grid = scope.grid;
  if (!grid.is_line || grid.across || grid.spread > 0) return false;
  return !expr::depends_on(value, grid.last) && !scope.has_numbers_of_points(value);
}

void define_number(PointsScope& scope, ir::Name name, DType dtype, Expr value,
                   std::string_view constant) {
  if (scope.grid.has_several() && (constant.empty() || !is_of_line(scope, value))) {
    load_lines(scope, value);
    const std::string own = scope.declare(name, dtype);
    const auto elements = elements_of(scope, value);
    return elements.empty() ? assign_each(scope, own, value)
                            : define_each(scope, own, value, elements);
  }
  scope.name_shared(value);
  const std::string init = scope.text(value);  // what has the name until now may stand in it
  scope.out.line("{}{} {} = {};", constant, carrier(dtype), scope.define(name), init);
}

void write_elements(PointsScope& scope, const matile::Write& w) {
  if (has_line(scope, w.target, w.indices)) {
    load_lines(scope, w.value);
    return store_line(scope, w);
  }
  if (scope.grid.is_patch) return write_patch(scope, w);
  load_lines(scope, w.value);
  const EachPoint each(scope);
  scope.name_shared(w.value);
  const int64_t lanes = scope.grid.lanes;
  scope.out.line("{}store_{}(p.{}, {}, {});",
                 lanes == 1 || scope.mode.are_lanes_apart ? ""
                 : lanes == scope.grid.warp               ? "if (lane == 0) "
                                                          : "if (lane == 0 && has_point) ",
                 expr::name(w.value.dtype()), identifier(w.target.str()),
                 scope.offset(w.target, w.indices), scope.text(w.value));
}

// What follows stands under the condition of a scatter, which closes with this object.
class WhereScattered {
 public:
  WhereScattered(PointsScope& scope, Expr condition) : scope_(scope), own_(scope) {
    has_condition_ = static_cast<bool>(condition);
    if (!has_condition_) return;
    scope.name_shared(condition);
    scope.out.open("if ({}) {{", scope.text(condition));
    scope.facts.assume(condition);
  }
  ~WhereScattered() {
    if (has_condition_) scope_.out.close();
  }
  WhereScattered(const WhereScattered&) = delete;
  WhereScattered& operator=(const WhereScattered&) = delete;

 private:
  PointsScope& scope_;
  OwnNames own_;
  bool has_condition_;
};

// Whether the elements of the points of a thread are added as vectors.
bool scatters_line(const PointsScope& scope, const matile::Scatter& s) {
  const bool is_same = !s.condition || (!expr::depends_on(s.condition, scope.grid.last) &&
                                        !scope.has_numbers_of_points(s.condition));
  return s.reducer == expr::Reducer::Sum && s.value.dtype() == DType::F32 && is_same &&
         !scope.grid.across && scope.own_copy.empty() && has_line(scope, s.target, s.indices);
}

void write_scatter(PointsScope& scope, const matile::Scatter& s) {
  const std::string target = identifier(s.target.str());
  if (scatters_line(scope, s)) {
    const WhereScattered where(scope, s.condition);
    load_lines(scope, s.value);
    const std::string line = scope.fresh("line");
    scope.out.line("float {}[{}];", line, scope.grid.points_per_thread);
    assign_each(scope, line + "[beside]", s.value);
    return scope.out.line("scatter_line_sum_f32(p.{}, {}, {}, {}, exist);", target,
                          scope.offset(s.target, s.indices), line, apart(scope, s.target));
  }
  // Under a condition of each point a line may be outside its tensor.
  if (!s.condition) load_lines(scope, s.value);
  const EachPoint each(scope);
  const WhereScattered where(scope, s.condition);
  scope.name_shared(s.value);
  if (!scope.own_copy.empty()) return scatter_to_own(scope, s);
  scope.out.line("scatter_{}_{}(p.{}, {}, {});", name(s.reducer), expr::name(s.value.dtype()),
                 target, scope.offset(s.target, s.indices), scope.text(s.value));
}

void write_if(PointsScope& scope, const matile::If& i) {
  scope.name_shared(i.condition);
  scope.out.open("if ({}) {{", scope.text(i.condition));
  scope.facts.assume(i.condition);
  write_block(scope, i.body);
  scope.out.close();
}

void write_search(PointsScope& scope, const matile::Search& s) {
  const std::string from = s.from ? scope.text(s.from) : "0ll";
  const std::string to = scope.text(s.axes[0].extent);
  const std::string var = scope.define(s.axes[0].name);
  scope.out.open("const long long {0} = {1}({2}, {3}, [&](long long {0}) {{", var,
                 s.from ? "first_without_near" : "first_without", from, to);
  scope.name_shared(s.condition);
  scope.out.line("return {};", scope.text(s.condition));
  scope.out.close("});");
  scope.named.clear();
}

// Lane k of n takes the turns k, k + n, ...
void write_shared_loop(PointsScope& scope, const matile::SharedLoop& s) {
  const std::string to = scope.text(s.to);
  const OwnNames own(scope);
  const std::string var = scope.define(s.var);
  scope.facts.add_axis(scope.pool.index(s.var), s.to);
  if (scope.grid.unroll > 1 && is_over_parts(scope, s.to)) {
    write_parts(scope, {s.var, "lane", to}, s.body);
  } else {
    scope.out.open("for (long long {0} = lane; {0} < {1}; {0} += {2}) {{", var, to,
                   scope.grid.lanes);
    write_block(scope, s.body);
    scope.out.close();
  }
}

// Lanes of a point put together what each of them has.
void write_join(PointsScope& scope, const matile::Join& j) {
  const DType dtype = scope.dtypes.find(j.name.str())->second;
  const std::string own = scope.local(j.name);
  const OwnNames names(scope);
  scope.locals["other"] = "other";
  const Expr both = scope.pool.binary(expr::combiner(j.reducer), scope.pool.var(j.name, dtype),
                                      scope.pool.var(scope.pool.name("other"), dtype));
  const int64_t lanes = scope.grid.lanes;
  scope.out.open("UNROLL for (int mask = {}; mask > {}; mask /= 2) {{", scope.grid.warp / 2,
                 lanes == scope.grid.warp ? 0 : scope.grid.warp / lanes / 2);
  scope.out.line("const {} other = lane_xor({}, mask);", carrier(dtype), own);
  scope.out.line("{} = {};", own, scope.text(both));
  scope.out.close();
}

void write_statement(PointsScope& scope, const ir::Op& op) {
  scope.named.clear();
  if (const auto* v = op.get<matile::Value>()) {
    scope.dtypes[std::string(v->name.str())] = v->dtype;
    define_number(scope, v->name, v->dtype, v->init, "");
  } else if (const auto* l = op.get<matile::Let>()) {
    define_number(scope, l->name, l->value.dtype(), l->value, "const ");
  } else if (const auto* a = op.get<matile::Assign>()) {
    load_lines(scope, a->value);
    assign_each(scope, scope.local(a->name), a->value);
  } else if (const auto* w = op.get<matile::Write>()) {
    write_elements(scope, *w);
  } else if (const auto* t = op.get<matile::Scatter>()) {
    write_scatter(scope, *t);
  } else if (const auto* i = op.get<matile::If>()) {
    write_if(scope, *i);
  } else if (const auto* j = op.get<matile::Join>()) {
    write_join(scope, *j);
  } else if (const auto* s = op.get<matile::SharedLoop>()) {
    write_shared_loop(scope, *s);
  } else if (const auto* k = op.get<matile::LaneLoop>()) {
    write_walk(scope, *k);
  } else if (const auto* o = op.get<matile::Sort>()) {
    write_sort(scope, *o);
  } else if (const auto* q = op.get<matile::Search>()) {
    write_search(scope, *q);
  } else {
    write_loop(scope, op.as<matile::Loop>());
  }
}

}  // namespace

void write_block(PointsScope& scope, const ir::Block& ops) {
  const OwnNames own(scope);
  for (const ir::Op& op : ops) write_statement(scope, op);
}

}  // namespace nautilus::emit
