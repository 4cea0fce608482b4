// SPDX-License-Identifier: Apache-2.0
// Loops with the same number of turns, which is small when the kernel runs: elements that several
// of them read are loaded once, all turns at a time, and stay in registers.
#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/points_emitter.h"
#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::emit {

using expr::Expr;
using EK = expr::Op;

namespace {

// The turn of all of them; no name of a program.
constexpr std::string_view kTurn = "turn of loops";

bool is_of_turns(const matile::Loop& l) {
  return l.direction == matile::Direction::Up && l.from.is_int(0) && l.to.op() != EK::IntConst;
}

}  // namespace

// The number of turns; null if no loop has them.
Expr PointsEmitter::held_turns(const ir::Block& ops) {
  for (const ir::Op& op : ops) {
    const auto* l = op.get<matile::Loop>();
    if (l && is_of_turns(*l)) return l->to;
  }
  return {};
}

// What a turn of the loop reads whatever happens, at places that are known before it: as elements
// of turn `kTurn`, and as they stand.
std::map<Expr, Expr, expr::ByContent> PointsEmitter::reads_of_turn(const matile::Loop& l) {
  std::set<std::string, std::less<>> defined;
  ir::for_each_op(l.body, [&](const ir::Op& op) {
    if (const auto* let = op.get<matile::Let>()) defined.emplace(let->name.str());
    if (const auto* inner = op.get<matile::Loop>()) defined.emplace(inner->var.str());
  });
  const Expr var = pool_.index(l.var);
  std::map<Expr, Expr, expr::ByContent> out;
  const auto look = [&](Expr value) {
    std::set<const expr::Node*> always;
    reach(value, always);
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read || !always.contains(e.node()) || !expr::depends_on(e, var)) return;
      const bool is_number = e.dtype() == expr::DType::F32 || expr::is_half(e.dtype());
      const bool is_known =
          std::ranges::all_of(e.args(), [&](Expr index) { return is_settled(index, defined); });
      if (!is_number || !is_known || written_.contains(e.name().str())) return;
      out.emplace(expr::substitute(pool_, e, {{var, pool_.index(kTurn)}}), e);
    });
  };
  for (const ir::Op& op : l.body) {
    if (const auto* a = op.get<matile::Assign>()) look(a->value);
    if (const auto* let = op.get<matile::Let>()) look(let->value);
    if (const auto* w = op.get<matile::Write>()) look(w->value);
  }
  return out;
}

// Loads what at least two of the loops read.
void PointsEmitter::load_held(const ir::Block& ops) {
  std::map<Expr, int, expr::ByContent> uses;
  for (const ir::Op& op : ops) {
    const auto* l = op.get<matile::Loop>();
    if (!l || !is_of_turns(*l)) continue;
    for (const auto& read : reads_of_turn(*l)) ++uses[read.first];
  }
  std::erase_if(uses, [](const auto& use) { return use.second < 2; });
  const std::string each = has_several() ? fmt::format("[{}]", points_per_thread_) : "";
  for (const auto& use : uses) {
    const std::string name = fresh("held");
    out_.line("float {}[{}]{};", name, held_, each);
    held_arrays_.emplace(use.first, name);
  }
  out_.open("UNROLL for (int turn = 0; turn < {}; ++turn) {{", held_);
  out_.line("if (turn >= {}) break;", text(held_turns(ops)));
  locals_[std::string(kTurn)] = "turn";
  for (const auto& [read, name] : held_arrays_) {
    if (are_lines_whole_ && has_line(read.name(), read.args())) {
      out_.line("load_whole_{}({}[turn], p.{}, {});", expr::name(read.dtype()), name,
                identifier(read.name().str()), offset(read.name().str(), read.args()));
      continue;
    }
    open_points();
    out_.line("{}[turn]{} = {};", name, has_several() ? "[beside]" : "", text(read));
    close_points();
  }
  locals_.erase(std::string(kTurn));
  out_.close();
}

// The block where loops have few turns, and as it is where they have more.
void PointsEmitter::hold(const ir::Block& ops) {
  out_.open("if ({} <= {}) {{", text(held_turns(ops)), held_);
  load_held(ops);
  is_holding_ = true;
  block(ops);
  is_holding_ = false;
  held_arrays_.clear();
  out_.close("} else {");
  out_.indent(2);
  block(ops);
  out_.close();
}

// A loop whose elements are there. False if it is none.
bool PointsEmitter::held_loop(const matile::Loop& l) {
  if (!is_holding_ || !is_of_turns(l)) return false;
  is_holding_ = false;  // loops in it are as they are
  const auto locals = locals_;
  const expr::Facts facts = facts_;
  out_.open("UNROLL for (int turn = 0; turn < {}; ++turn) {{", held_);
  out_.line("if (turn >= {}) break;", text(l.to));
  out_.line("const long long {} = turn;", define(l.var));
  facts_.add_axis(pool_.index(l.var), l.to);
  for (const auto& [at_turn, read] : reads_of_turn(l)) {
    const auto it = held_arrays_.find(at_turn);
    if (it != held_arrays_.end())
      held_names_.emplace(read, it->second + (has_several() ? "[turn][beside]" : "[turn]"));
  }
  block(l.body);
  held_names_.clear();
  out_.close();
  locals_ = locals;
  facts_ = facts;
  is_holding_ = true;
  return true;
}

}  // namespace nautilus::emit
