// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_scope.h"

#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/points_inside.h"
#include "emit/typed_expression.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/loop_loads.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;

// A subexpression of so many nodes is worth a name if it occurs twice; a read always is.
constexpr uint32_t kWorthNaming = 4;

// Names that the text has for itself.
bool is_reserved(std::string_view name) {
  constexpr std::string_view kOwn[] = {
      "points", "lane",         "has_point", "other",  "first", "more",  "left",         "exist",
      "tiles",  "exist_across", "over",      "beside", "turn",  "again", "again_across", "block"};
  return std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
}

}  // namespace

PointsScope::PointsScope(const ir::Program& of, const matile::Kernel& printed,
                         expr::ExprPool& given_pool)
    : program(of), kernel(printed), pool(given_pool), grid(of, printed, given_pool) {
  for (const ir::Op& op : program.body) {
    if (const auto* dim = op.get<ir::Dim>()) facts.add_size(pool.index(dim->name));
    if (const auto* fact = op.get<ir::Fact>()) facts.assume(fact->condition);
    if (const auto* let = op.get<matile::Let>()) plan_sizes.emplace(let->name.str());
  }
  ir::for_each_op(points().body, [&](const ir::Op& op) {
    if (const auto* w = op.get<matile::Write>()) written.emplace(w->target.str());
    if (const auto* s = op.get<matile::Scatter>()) written.emplace(s->target.str());
  });
}

std::string PointsScope::fresh(std::string_view stem) {
  std::string name;
  do name = fmt::format("{}_{}", stem, numbers_++);
  while (!taken_.insert(name).second);
  return name;
}

std::string PointsScope::define(ir::Name name) {
  const std::string stem = identifier(name.str());
  std::string own = stem;
  for (int n = 2; is_reserved(own) || !taken_.insert(own).second; ++n)
    own = fmt::format("{}_{}", stem, n);
  locals[std::string(name.str())] = own;
  return own;
}

std::string PointsScope::declare(ir::Name name, DType dtype) {
  const std::string own = define(name);
  if (grid.across)
    out.line("{} {}[{}][{}];", carrier(dtype), own, grid.points_across, grid.points_per_thread);
  else
    out.line("{} {}[{}];", carrier(dtype), own, grid.points_per_thread);
  return local(name) = own + (grid.across ? "[over][beside]" : "[beside]");
}

std::string PointsScope::variable(Expr v) const {
  const auto it = locals.find(v.name().str());
  if (it != locals.end()) return it->second;
  const std::string name = "p." + identifier(v.name().str());
  if (v.dtype() == DType::Bool) return "(" + name + " != 0)";
  return v.dtype() != DType::I64 && expr::is_int(v.dtype()) ? "(int)" + name : name;
}

std::string PointsScope::offset(ir::Name tensor, std::span<const Expr> indices) {
  std::string sum;
  for (size_t k = 0; k < indices.size(); ++k)
    sum += (k ? " + " : "") + global(tensor).step(text(indices[k]), k);
  return sum.empty() ? "0" : sum;
}

std::string PointsScope::text(Expr e) {
  ExpressionNames names;
  names.facts = &facts;
  names.is_coarse = ir::allows_coarse_functions(program, matile::output_dtypes(program));
  names.variable = [this](Expr v) { return variable(v); };
  names.read = [this](Expr r) {
    const auto place = part_places.find(r);
    return fmt::format("load_{}{}(p.{}, {})", written.contains(r.name().str()) ? "own_" : "",
                       expr::name(r.dtype()), identifier(r.name().str()),
                       place == part_places.end() ? offset(r.name(), r.args()) : place->second);
  };
  names.instead = [this](Expr x) -> std::string {
    const auto it = named.find(x);
    if (it != named.end()) return it->second;
    const auto known = held.names.find(x);
    if (known != held.names.end()) return known->second;
    const bool is_load = mode.is_near || mode.is_ahead || (mode.is_inside && grid.spread > 0);
    if (mode.is_inside && holds_inside(*this, x)) return text(element_inside(*this, x));
    return is_load && matile::is_load_where(x) ? load_where(*this, x) : "";
  };
  return typed_expression(e, names);
}

bool PointsScope::has_numbers_of_points(Expr e) const {
  const auto vars = expr::free_vars(e);
  return std::ranges::any_of(vars, [&](Expr v) {
    const auto own = locals.find(v.name().str());
    return own != locals.end() && own->second.ends_with(']');
  });
}

void PointsScope::name_shared(Expr root) {
  for (Expr e : shared_parts(root, kWorthNaming)) {
    if (named.contains(e)) continue;
    const std::string name = fresh("shared");
    out.line("const {} {} = {};", carrier(e.dtype()), name, text(e));
    named.emplace(e, name);
  }
}

}  // namespace nautilus::emit
