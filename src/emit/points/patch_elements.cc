// SPDX-License-Identifier: Apache-2.0
// Elements that a patch reads or writes: where they lie, split into what no loop moves, what loops
// move and numbers, and what is asked of them.
#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/each_point.h"
#include "emit/points/points_patches.h"
#include "emit/typed_expression.h"
#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using EK = expr::Op;

struct Place {
  std::string fixed;             // in the tensor, before the loops
  std::string moving;            // from there, by the loops around; empty if they do not
  std::vector<std::string> far;  // from there, by turns and points
  int64_t near = 0;              // the same along dimensions whose strides are known
};

// Terms of an index, by whether loops around move them; null: there are none.
struct IndexTerms {
  Expr fixed;
  Expr moving;
};

IndexTerms terms_of(PointsScope& scope, const expr::Poly& index) {
  const auto is_moving = [&](const auto& atoms) {
    return std::ranges::any_of(atoms, [&](Expr atom) {
      return std::ranges::any_of(expr::free_vars(atom), [&](Expr v) {
        return scope.patch.loops.contains(v.name().str());
      });
    });
  };
  IndexTerms out;
  for (const auto& [atoms, factor] : index.terms()) {
    if (atoms.empty()) continue;
    Expr term = scope.pool.integer(factor);
    for (Expr atom : atoms) term = term.is_int(1) ? atom : scope.pool.binary(EK::Mul, term, atom);
    Expr& sum = is_moving(atoms) ? out.moving : out.fixed;
    sum = sum ? scope.pool.binary(EK::Add, sum, term) : term;
  }
  return out;
}

// Where an element is. Nothing if its place is found in another tensor.
std::optional<Place> place_of(PointsScope& scope, ir::Name tensor, std::span<const Expr> indices) {
  const GlobalTensor& global = scope.global(tensor);
  Place out;
  for (size_t k = 0; k < indices.size(); ++k) {
    const auto p =
        expr::tensors_read(indices[k]).empty() ? expr::Poly::of(indices[k]) : std::nullopt;
    if (!p) return std::nullopt;
    const IndexTerms terms = terms_of(scope, *p);
    const std::string& stride = global.strides[k];
    const int64_t number = p->constant_term();
    if (terms.fixed) out.fixed += " + " + global.step(scope.text(terms.fixed), k);
    if (terms.moving)
      out.moving += fmt::format(" + (int)({}) * (int){}", scope.text(terms.moving), stride);
    if (terms.moving || number != 0) scope.patch.moved.emplace(tensor.str(), k);
    const bool is_known = std::ranges::all_of(stride, [](char c) { return c >= '0' && c <= '9'; });
    if (is_known)
      out.near += number * std::stoll(stride);
    else if (number != 0)
      out.far.push_back(fmt::format(" + {} * (int){}", number, stride));
  }
  return out;
}

// The name of a place in memory that no loop moves.
const std::string& pointer_to(PointsScope& scope, const std::string& place, std::string_view stem) {
  auto it = scope.patch.pointers.find(place);
  if (it == scope.patch.pointers.end())
    it = scope.patch.pointers.emplace(place, scope.fresh(stem)).first;
  return it->second;
}

// The name of a number; writes it down if no point or turn before has.
std::string named_number(PointsScope& scope, const std::string& key, std::string_view type,
                         std::string_view stem, const std::string& value) {
  const auto it = scope.window_places.find(key);
  if (it != scope.window_places.end()) return it->second;
  const std::string name = scope.fresh(stem);
  scope.out.line("const {} {} = {};", type, name, value);
  return scope.window_places.emplace(key, name).first->second;
}

// The text of where an element is, from the place that no loop moves.
std::string index_text(PointsScope& scope, ir::Name tensor, const Place& place) {
  std::string at = "0";
  std::string key = fmt::format("{} at", tensor.str());
  if (!place.moving.empty()) {
    key += place.moving;
    at = named_number(scope, key, "int", "at", fmt::format("hidden({})", place.moving.substr(3)));
  }
  for (const std::string& far : place.far) {
    key += far;
    at = named_number(scope, key, "int", "at", fmt::format("hidden({}{})", at, far));
  }
  return fmt::format("(u64)((long long){} + {})", at, place.near);
}

// Points and turns that ask the same of an element ask it in the same words.
Expr in_same_words(PointsScope& scope, Expr condition) {
  const bool is_compared = condition.op() == EK::Lt || condition.op() == EK::Le ||
                           condition.op() == EK::Gt || condition.op() == EK::Ge;
  if (!is_compared || condition[0].dtype() != expr::DType::I64 ||
      !expr::tensors_read(condition).empty())
    return condition;
  const auto apart = expr::difference(condition[0], condition[1]);
  return apart ? scope.pool.binary(condition.op(), expr::to_expr(scope.pool, *apart),
                                   scope.pool.integer(0))
               : condition;
}

// The text of a condition, its parts by the axes of the points that they are about. Parts that no
// loop changes have names.
std::string known_conditions(PointsScope& scope, Expr condition) {
  std::map<std::string, Expr> by_axes;  // by names of the variables
  for (Expr part : expr::conjuncts(condition)) {
    const Expr same = in_same_words(scope, part);
    std::string axes;
    bool is_before_loops = expr::tensors_read(part).empty();
    for (Expr v : expr::free_vars(same)) {
      const std::string name(v.name().str());
      is_before_loops &= !scope.patch.loops.contains(name) && !scope.dtypes.contains(name);
      if (scope.locals.contains(name)) axes += name + " ";
    }
    if (!is_before_loops) axes += "in loops";
    Expr& all = by_axes[axes];
    all = all ? scope.pool.binary(EK::And, all, same) : same;
  }
  std::string out;
  for (const auto& [axes, all] : by_axes) {
    std::string one = "(" + scope.text(all) + ")";
    if (!axes.ends_with("in loops")) {
      auto it = scope.patch.conditions.find(all);
      if (it == scope.patch.conditions.end())
        it = scope.patch.conditions.emplace(all, scope.fresh("is_there")).first;
      one = it->second;
    }
    out += (out.empty() ? "" : " & ") + one;
  }
  return out;
}

// How far the element of a point is from that of the thread's first one; empty if it is the same,
// nothing if no number says it.
std::optional<std::string> distance_of_points(PointsScope& scope, const matile::Write& w) {
  const GlobalTensor& global = scope.global(w.target);
  std::string moved;
  bool is_known = true;
  for (size_t k = 0; k < w.indices.size(); ++k) {
    const auto p = expr::Poly::of(w.indices[k]);
    for (const auto& [axis, name] :
         {std::pair(scope.grid.across, "over"), std::pair(scope.grid.last, "beside")}) {
      if (!expr::depends_on(w.indices[k], axis)) continue;
      const auto parts = p ? p->split(axis) : std::nullopt;
      const auto step = parts ? parts->first.constant() : std::nullopt;
      is_known &= step.has_value();
      moved += fmt::format(" + {} * ({} * (int){})", name, step.value_or(0), global.strides[k]);
      scope.patch.moved.emplace(w.target.str(), k);
    }
  }
  return is_known ? std::optional(moved) : std::nullopt;
}

}  // namespace

void load_in_patch(PointsScope& scope, Expr element) {
  const bool is_guarded = element.op() == EK::Select;
  const Expr under = is_guarded ? element[1] : element;
  const Expr read = under.op() == EK::Cast ? under[0] : under;
  if (scope.named.contains(element) || scope.written.contains(read.name().str())) return;
  const auto place = place_of(scope, read.name(), read.args());
  if (!place) return;
  const std::string from =
      pointer_to(scope, fmt::format("p.{}{}", identifier(read.name().str()), place->fixed), "from");
  const std::string index = index_text(scope, read.name(), *place);
  const std::string_view dtype = expr::name(read.dtype());
  std::string load;
  if (is_guarded) {
    const std::string asked = known_conditions(scope, element[0]);
    load = fmt::format("load_{}_where({}, {}, {}, {})", dtype, asked, from, index,
                       scope.text(element[2]));
  } else {
    load = fmt::format("load_{}({}, {})", dtype, from, index);
  }
  scope.named.emplace(element,
                      named_number(scope, load, carrier(element.dtype()), "element", load));
}

void write_patch(PointsScope& scope, const matile::Write& w) {
  Writer& out = scope.out;
  const auto moved = distance_of_points(scope, w);
  const std::string tensor = identifier(w.target.str());
  const std::string_view dtype = expr::name(w.value.dtype());
  const std::string first = fmt::format("p.{} + {}", tensor, scope.offset(w.target, w.indices));
  const EachPoint each(scope);
  out.open("if (over >= again_across && beside >= again) {{");
  scope.name_shared(w.value);
  if (moved && !moved->empty()) {
    const std::string& into = pointer_to(scope, first, "into");
    out.line("store_{}({}, (u64)(long long)({}), {});", dtype, into, moved->substr(3),
             scope.text(w.value));
  } else {
    out.line("store_{}(p.{}, {}, {});", dtype, tensor, scope.offset(w.target, w.indices),
             scope.text(w.value));
  }
  out.close();
}

}  // namespace nautilus::emit
