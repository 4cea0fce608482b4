// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_windows.h"

#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/points_inside.h"
#include "emit/points/points_patches.h"
#include "emit/typed_expression.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "matile/loop_loads.h"
#include "matile/windows.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using EK = expr::Op;

void write_turns(PointsScope& scope, const matile::Loop& l, expr::Substitution& turns) {
  const Expr var = scope.pool.index(l.var);
  for (int64_t turn = 0; turn < l.to.integer(); ++turn) {
    turns[var] = scope.pool.integer(turn);
    for (const ir::Op& op : l.body) {
      if (const auto* inner = op.get<matile::Loop>())
        write_turns(scope, *inner, turns);
      else
        write_turn(scope, op.as<matile::Assign>(), turns);
    }
  }
  turns.erase(var);
}

// The name of a place; writes it down if no turn before has.
std::string named_place(PointsScope& scope, const std::string& key, const std::string& text) {
  const auto it = scope.window_places.find(key);
  if (it != scope.window_places.end()) return it->second;
  const std::string name = scope.fresh("at");
  scope.out.line("const u64 {} = hidden({});", name, text);
  return scope.window_places.emplace(key, name).first->second;
}

// The text of an element's place: that of a row and a number. Empty if its indices are no sums.
std::string shared_place(PointsScope& scope, Expr read) {
  const GlobalTensor& global = scope.global(read.name());
  std::string base(read.name().str());  // what the indices are but for their numbers
  std::vector<int64_t> numbers;
  ir::Exprs without;
  for (Expr index : read.args()) {
    const auto p = expr::tensors_read(index).empty() ? expr::Poly::of(index) : std::nullopt;
    if (!p) return "";
    const int64_t number = p->constant_term();
    const auto rest = expr::plus(*p, -number);
    if (!rest) return "";
    numbers.push_back(number);
    without.push_back(expr::to_expr(scope.pool, *rest));
    base += " " + scope.text(without.back());
  }
  std::string at = named_place(scope, base, scope.offset(read.name(), without));
  const auto add = [&](std::string& to, size_t k) {
    if (numbers[k] == 0) return;
    to += fmt::format(" + (u64){}ll", numbers[k]);
    if (global.strides[k] != "1") to += " * " + global.strides[k];
  };
  std::string row = at;
  for (size_t k = 0; k + 1 < numbers.size(); ++k) add(row, k);
  if (row != at) at = named_place(scope, base + " at " + row, row);
  if (!numbers.empty()) add(at, numbers.size() - 1);
  return at;
}

// Names the element; loads it if no turn before has.
void load_once(PointsScope& scope, Expr element) {
  const bool is_guarded = element.op() == EK::Select;
  const Expr under = is_guarded ? element[1] : element;
  const Expr read = under.op() == EK::Cast ? under[0] : under;
  if (scope.named.contains(element) || scope.written.contains(read.name().str())) return;
  const std::string at = shared_place(scope, read);
  if (at.empty()) return;
  const std::string load = is_guarded ? load_where(scope, element, at)
                                      : fmt::format("load_{}(p.{}, {})", expr::name(read.dtype()),
                                                    identifier(read.name().str()), at);
  auto known = scope.window_places.find(load);
  if (known == scope.window_places.end()) {
    const std::string name = scope.fresh("element");
    scope.out.line("const {} {} = {};", carrier(element.dtype()), name, load);
    known = scope.window_places.emplace(load, name).first;
  }
  scope.named.emplace(element, known->second);
}

// (j + 3) / 2 = j / 2 + 1 where j, where a line begins, is a multiple of 2.
Expr with_quotients(PointsScope& scope, Expr e) {
  const PointsGrid& grid = scope.grid;
  expr::ExprPool& pool = scope.pool;
  return expr::rebuild(pool, e, [&](Expr x) {
    if (x.op() != EK::FloorDiv || x[1].op() != EK::IntConst || x[1].integer() < 1) return x;
    const auto above = expr::Poly::of(x[0]);
    if (!above) return x;
    const int64_t by = x[1].integer();
    for (const auto& [atoms, factor] : above->terms()) {
      if (atoms.empty()) continue;
      const bool is_one = atoms.size() == 1;
      const int64_t multiple = is_one && atoms[0] == grid.last     ? grid.points_per_thread
                               : is_one && atoms[0] == grid.across ? grid.points_across
                                                                   : 1;
      if (factor * multiple % by != 0) return x;
    }
    const int64_t number = above->constant_term();
    const auto rest = expr::plus(*above, -number);
    if (!rest || number < 0) return x;
    const Expr whole = pool.binary(EK::FloorDiv, expr::to_expr(pool, *rest), x[1]);
    return pool.binary(EK::Add, whole, pool.integer(number / by));
  });
}

// What an expression of the thread's first point becomes for another one.
expr::Substitution moved_to(PointsScope& scope, expr::Substitution here, int64_t across,
                            int64_t along) {
  const auto move = [&](Expr axis, int64_t by) {
    if (by > 0) here[axis] = scope.pool.binary(EK::Add, axis, scope.pool.integer(by));
  };
  if (scope.grid.across) move(scope.grid.across, across);
  move(scope.grid.last, along);
  return here;
}

// A number of one point gets its value.
void write_of_point(PointsScope& scope, int64_t over, int64_t beside, const std::string& own,
                    Expr value) {
  scope.out.open("{{");
  scope.out.line("const int over = {}, beside = {};", over, beside);
  scope.out.line("{} = {};", own, scope.text(value));
  scope.out.close();
}

}  // namespace

void write_window(PointsScope& scope, const matile::Loop& l) {
  scope.window_places.clear();
  expr::Substitution turns;
  write_turns(scope, l, turns);
  scope.window_places.clear();
  scope.named.clear();
}

void write_turn(PointsScope& scope, const matile::Assign& a, const expr::Substitution& turns) {
  const PointsGrid& grid = scope.grid;
  const Expr value = expr::rebuild(scope.pool, a.value, [&](Expr x) {
    return holds_inside(scope, x) ? element_inside(scope, x) : x;
  });
  for (int64_t over = 0; over < grid.points_across; ++over) {
    for (int64_t beside = 0; beside < grid.points_per_thread; ++beside) {
      const Expr moved =
          expr::substitute(scope.pool, value, moved_to(scope, turns, over, beside * grid.spread));
      const auto always = evaluated_always(moved);
      expr::for_each(moved, [&](Expr e) {
        const bool is_element = e.op() == EK::Read || matile::is_load_where(e);
        if (is_element && always.contains(e.node()))
          grid.is_patch ? load_in_patch(scope, e) : load_once(scope, e);
      });
      write_of_point(scope, over, beside, scope.local(a.name), moved);
    }
  }
}

std::vector<Expr> elements_of(const PointsScope& scope, Expr value) {
  const PointsGrid& grid = scope.grid;
  std::vector<Expr> out;
  if (!scope.mode.are_lines_whole || grid.spread == 0 || !grid.across) return out;
  const auto always = evaluated_always(value);
  expr::for_each(value, [&](Expr e) {
    if (e.op() != EK::Read || !always.contains(e.node()) || scope.named.contains(e)) return;
    const bool has_read = std::ranges::any_of(
        e.args(), [](Expr index) { return !expr::tensors_read(index).empty(); });
    const bool differs = expr::depends_on(e, grid.last) || expr::depends_on(e, grid.across);
    if (differs && !has_read && !scope.written.contains(e.name().str())) out.push_back(e);
  });
  return out;
}

void define_each(PointsScope& scope, const std::string& own, Expr value,
                 const std::vector<Expr>& elements) {
  const PointsGrid& grid = scope.grid;
  const ir::Name last = grid.last.name();
  const ir::Name across = grid.across.name();
  for (int64_t over = 0; over < grid.points_across; ++over) {
    for (int64_t beside = 0; beside < grid.points_per_thread; ++beside) {
      const expr::Substitution here = moved_to(scope, {}, over, beside);
      std::vector<std::string> names;
      for (Expr e : elements) {
        const Expr moved = with_quotients(scope, expr::substitute(scope.pool, e, here));
        scope.named.erase(moved);  // what another point has under this name
        load_once(scope, moved);
        const auto it = scope.named.find(moved);
        names.push_back(it == scope.named.end() ? scope.text(moved) : it->second);
      }
      for (size_t k = 0; k < elements.size(); ++k)
        scope.named.insert_or_assign(elements[k], names[k]);
      const OtherText column(scope, last, fmt::format("({} + beside)", scope.local(last)));
      const OtherText row(scope, across, fmt::format("({} + over)", scope.local(across)));
      write_of_point(scope, over, beside, own, value);
    }
  }
}

}  // namespace nautilus::emit
