// SPDX-License-Identifier: Apache-2.0
// Windows of spread points, for threads inside: every turn for every point is written out, and an
// element that several of them read is loaded once. The compiler would find some of these, but it
// rewrites places until equal ones look different.
#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/points_emitter.h"
#include "emit/typed_expression.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "matile/loop_loads.h"
#include "matile/windows.h"

namespace nautilus::emit {

using expr::Expr;
using EK = expr::Op;

// Whether the loop has known turns and nothing but loops of the same kind and values that change.
bool PointsEmitter::is_window(const matile::Loop& l) {
  return matile::all_turns(l) > 0 && std::ranges::all_of(l.body, [](const ir::Op& op) {
           if (const auto* inner = op.get<matile::Loop>()) return is_window(*inner);
           return op.is<matile::Assign>();
         });
}

void PointsEmitter::window(const matile::Loop& l) {
  window_places_.clear();
  expr::Substitution turns;
  write_turns(l, turns);
  window_places_.clear();
  named_.clear();
}

void PointsEmitter::write_turns(const matile::Loop& l, expr::Substitution& turns) {
  const Expr var = pool_.index(l.var);
  for (int64_t turn = 0; turn < l.to.integer(); ++turn) {
    turns[var] = pool_.integer(turn);
    for (const ir::Op& op : l.body) {
      if (const auto* inner = op.get<matile::Loop>())
        write_turns(*inner, turns);
      else
        write_turn(op.as<matile::Assign>(), turns);
    }
  }
  turns.erase(var);
}

// One turn for all points of the thread.
void PointsEmitter::write_turn(const matile::Assign& a, const expr::Substitution& turns) {
  const Expr value = expr::rebuild(pool_, a.value, [&](Expr x) {
    return x.op() == EK::Select && inside_.contains(x[0]) ? inside(x) : x;
  });
  for (int64_t over = 0; over < points_across_; ++over) {
    for (int64_t beside = 0; beside < points_per_thread_; ++beside) {
      expr::Substitution here = turns;
      const auto move = [&](Expr axis, int64_t by) {
        if (by > 0) here[axis] = pool_.binary(EK::Add, axis, pool_.integer(by));
      };
      if (across_) move(across_, over);
      move(last_, beside * spread_);
      const Expr moved = expr::substitute(pool_, value, here);
      std::set<const expr::Node*> always;
      reach(moved, always);
      expr::for_each(moved, [&](Expr e) {
        const bool is_element = e.op() == EK::Read || matile::is_load_where(e);
        if (is_element && always.contains(e.node())) is_patch_ ? load_in_patch(e) : load_once(e);
      });
      out_.open("{{");
      out_.line("const int over = {}, beside = {};", over, beside);
      out_.line("{} = {};", locals_.find(a.name.str())->second, text(moved));
      out_.close();
    }
  }
}

// Names the element; loads it if no turn before has. Its place is that of a row and a number.
void PointsEmitter::load_once(Expr element) {
  const bool is_guarded = element.op() == EK::Select;
  const Expr under = is_guarded ? element[1] : element;
  const Expr read = under.op() == EK::Cast ? under[0] : under;
  if (named_.contains(element) || written_.contains(read.name().str())) return;
  const GlobalTensor& global = globals_.find(read.name().str())->second;
  std::string base(read.name().str());  // what the indices are but for their numbers
  std::vector<int64_t> numbers;
  ir::Exprs without;
  for (Expr index : read.args()) {
    const auto p = expr::tensors_read(index).empty() ? expr::Poly::of(index) : std::nullopt;
    if (!p) return;
    const int64_t number = p->constant_term();
    const auto rest = expr::plus(*p, -number);
    if (!rest) return;
    numbers.push_back(number);
    without.push_back(expr::to_expr(pool_, *rest));
    base += " " + text(without.back());
  }
  const auto place = [&](const std::string& key, const std::string& text_of) {
    const auto it = window_places_.find(key);
    if (it != window_places_.end()) return it->second;
    const std::string name = fresh("at");
    out_.line("const u64 {} = hidden({});", name, text_of);
    return window_places_.emplace(key, name).first->second;
  };
  std::string at = place(base, offset(read.name().str(), without));
  const auto add = [&](std::string& to, size_t k) {
    if (numbers[k] == 0) return;
    to += fmt::format(" + (u64){}ll", numbers[k]);
    if (global.strides[k] != "1") to += " * " + global.strides[k];
  };
  std::string row = at;
  for (size_t k = 0; k + 1 < numbers.size(); ++k) add(row, k);
  if (row != at) at = place(base + " at " + row, row);
  if (!numbers.empty()) add(at, numbers.size() - 1);
  const std::string load = is_guarded ? load_where(element, at)
                                      : fmt::format("load_{}(p.{}, {})", expr::name(read.dtype()),
                                                    identifier(read.name().str()), at);
  const auto known = window_places_.find(load);
  if (known != window_places_.end()) {
    named_.emplace(element, known->second);
    return;
  }
  const std::string name = fresh("element");
  out_.line("const {} {} = {};", carrier(element.dtype()), name, load);
  window_places_.emplace(load, name);
  named_.emplace(element, name);
}

// Of lines that are spread: what they read whatever happens, each point for itself. Neighbours may
// read the same.
std::vector<Expr> PointsEmitter::elements_of(Expr value) const {
  std::vector<Expr> out;
  if (!are_lines_whole_ || spread_ == 0 || !across_) return out;
  std::set<const expr::Node*> always;
  reach(value, always);
  expr::for_each(value, [&](Expr e) {
    if (e.op() != EK::Read || !always.contains(e.node()) || named_.contains(e)) return;
    const bool has_read = std::ranges::any_of(
        e.args(), [](Expr index) { return !expr::tensors_read(index).empty(); });
    const bool differs = expr::depends_on(e, last_) || expr::depends_on(e, across_);
    if (differs && !has_read && !written_.contains(e.name().str())) out.push_back(e);
  });
  return out;
}

// A number of each point, with elements that several points read loaded once.
void PointsEmitter::define_each(const std::string& own, Expr value,
                                const std::vector<Expr>& elements) {
  const auto locals = locals_;
  const std::string last(last_.name().str());
  const std::string across(across_.name().str());
  for (int64_t over = 0; over < points_across_; ++over) {
    for (int64_t beside = 0; beside < points_per_thread_; ++beside) {
      expr::Substitution here;
      if (over > 0) here[across_] = pool_.binary(EK::Add, across_, pool_.integer(over));
      if (beside > 0) here[last_] = pool_.binary(EK::Add, last_, pool_.integer(beside));
      std::vector<std::string> names;
      for (Expr e : elements) {
        const Expr moved = with_quotients(expr::substitute(pool_, e, here));
        named_.erase(moved);  // what another point has under this name
        load_once(moved);
        const auto it = named_.find(moved);
        names.push_back(it == named_.end() ? text(moved) : it->second);
      }
      for (size_t k = 0; k < elements.size(); ++k) named_.insert_or_assign(elements[k], names[k]);
      locals_[last] = fmt::format("({} + beside)", locals.at(last));
      locals_[across] = fmt::format("({} + over)", locals.at(across));
      out_.open("{{");
      out_.line("const int over = {}, beside = {};", over, beside);
      out_.line("{} = {};", own, text(value));
      out_.close();
      locals_ = locals;
    }
  }
}

// (j + 3) / 2 = j / 2 + 1 where j, where a line begins, is a multiple of 2.
Expr PointsEmitter::with_quotients(Expr e) {
  return expr::rebuild(pool_, e, [&](Expr x) {
    if (x.op() != EK::FloorDiv || x[1].op() != EK::IntConst || x[1].integer() < 1) return x;
    const auto above = expr::Poly::of(x[0]);
    if (!above) return x;
    const int64_t by = x[1].integer();
    for (const auto& [atoms, factor] : above->terms()) {
      if (atoms.empty()) continue;
      const bool is_one = atoms.size() == 1;
      const int64_t multiple = is_one && atoms[0] == last_     ? points_per_thread_
                               : is_one && atoms[0] == across_ ? points_across_
                                                               : 1;
      if (factor * multiple % by != 0) return x;
    }
    const int64_t number = above->constant_term();
    const auto rest = expr::plus(*above, -number);
    if (!rest || number < 0) return x;
    const Expr whole = pool_.binary(EK::FloorDiv, expr::to_expr(pool_, *rest), x[1]);
    return pool_.binary(EK::Add, whole, pool_.integer(number / by));
  });
}

}  // namespace nautilus::emit
