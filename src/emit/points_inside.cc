// SPDX-License-Identifier: Apache-2.0
// Threads that are inside: a condition of `where` that says where in its tensor a point is (the
// edge of an image, the padding of a window) holds for all points of the thread and all turns of
// its loops. It is asked once for them, at the worst turns; then loads have no branches, and those
// that windows share are loaded once. The other threads ask each time.
#include <algorithm>

#include "emit/points_emitter.h"
#include "expr/walk.h"

namespace nautilus::emit {

using expr::Expr;
using expr::Poly;
using EK = expr::Op;

namespace {

// Turns of a loop that starts at 0, if its text says how many; else 0.
int64_t turns_of(const matile::Loop& l) {
  const bool is_known =
      l.direction == matile::Direction::Up && l.from.is_int(0) && l.to.op() == EK::IntConst;
  return is_known ? std::max<int64_t>(l.to.integer(), 0) : 0;
}

// A comparison at the worst values of variables that run from 0, or null.
Expr at_worst(Expr comparison, const std::vector<std::pair<Expr, int64_t>>& ranges, Expr last,
              int64_t points, expr::ExprPool& pool) {
  const bool is_less = comparison.op() == EK::Lt || comparison.op() == EK::Le;
  const bool is_strict = comparison.op() == EK::Lt || comparison.op() == EK::Gt;
  if (!is_less && comparison.op() != EK::Gt && comparison.op() != EK::Ge) return {};
  if (comparison[0].dtype() != expr::DType::I64) return {};
  auto most = expr::difference(comparison[is_less ? 0 : 1], comparison[is_less ? 1 : 0]);
  const auto put = [&](Expr var, int64_t highest, bool stays) {
    if (!most) return;
    const auto parts = most->split(var);
    const auto slope = parts ? parts->first.constant() : std::nullopt;
    if (!slope) {
      most.reset();
      return;
    }
    const int64_t added = *slope > 0 ? *slope * highest : 0;
    most = expr::plus(stays ? *most : parts->second, added);
  };
  for (const auto& [var, turns] : ranges) put(var, turns - 1, false);
  if (points > 1) put(last, points - 1, true);
  if (!most) return {};
  return pool.binary(is_strict ? EK::Lt : EK::Le, expr::to_expr(pool, *most), pool.integer(0));
}

}  // namespace

// The turns of a loop with those of loops in it; 0: not known.
int64_t PointsEmitter::all_turns(const matile::Loop& l) {
  int64_t inner = 0;
  for (const ir::Op& op : l.body) {
    if (!op.is<matile::Loop>()) continue;
    const int64_t turns = all_turns(op.as<matile::Loop>());
    if (turns == 0) return 0;
    inner += turns;
  }
  return turns_of(l) * std::max<int64_t>(inner, 1);
}

// The turns of the longest window: known loops that are in no other one.
int64_t PointsEmitter::window_turns(const ir::Block& body) {
  int64_t most = 0;
  for (const ir::Op& op : body) {
    const auto* l = op.get<matile::Loop>();
    if (!l) continue;
    const int64_t turns = all_turns(*l);
    most = std::max(most, turns > 0 ? turns : window_turns(l->body));
  }
  return most;
}

void PointsEmitter::ask_where(Expr condition, const Ranges& ranges) {
  if (inside_.contains(condition)) return;
  std::vector<Expr> parts = {condition};
  std::vector<Expr> asked;
  while (!parts.empty()) {
    const Expr part = parts.back();
    parts.pop_back();
    if (part.op() == EK::And) {
      parts.push_back(part[1]);
      parts.push_back(part[0]);
      continue;
    }
    const bool is_known = expr::tensors_read(part).empty() &&
                          std::ranges::none_of(expr::free_vars(part), [&](Expr v) {
                            return own_.contains(v.name().str());
                          });
    const Expr worst = is_known ? at_worst(part, ranges, last_, points_per_thread_, pool_) : Expr();
    if (!worst) return;
    asked.push_back(worst);
  }
  inside_.insert(condition);
  for (Expr a : asked) {
    if (std::ranges::find(asked_, a) == asked_.end()) asked_.push_back(a);
  }
}

// Names that a statement gives are not known before it.
void PointsEmitter::collect_names(const ir::Block& body) {
  for (const ir::Op& op : body) {
    if (const auto* v = op.get<matile::Value>()) own_.emplace(v->name.str());
    if (const auto* l = op.get<matile::Let>()) own_.emplace(l->name.str());
    if (const auto* s = op.get<matile::SharedLoop>()) own_.emplace(s->var.str());
    if (const auto* w = op.get<matile::LaneLoop>()) own_.emplace(w->var.str());
    if (const auto* l = op.get<matile::Loop>()) {
      if (turns_of(*l) == 0) own_.emplace(l->var.str());
      collect_names(l->body);
    }
  }
}

void PointsEmitter::collect_conditions(const ir::Block& body, Ranges ranges) {
  for (const ir::Op& op : body) {
    if (const auto* l = op.get<matile::Loop>()) {
      Ranges deeper = ranges;
      if (const int64_t turns = turns_of(*l)) deeper.emplace_back(pool_.index(l->var), turns);
      collect_conditions(l->body, deeper);
      continue;
    }
    // Outside of loops of known turns there is nothing to share.
    if (ranges.empty() || !op.is<matile::Assign>()) continue;
    expr::for_each(op.as<matile::Assign>().value, [&](Expr e) {
      if (e.op() == EK::Select) ask_where(e[0], ranges);
    });
  }
}

// The block twice where conditions can be asked once: for threads inside, and for the others.
void PointsEmitter::body(const ir::Block& ops) {
  // Of a window whose turns are not written one by one nothing is shared.
  const int64_t turns = window_turns(ops) * points_per_thread_;
  if (lanes_ == 1 && turns <= ir::target_of(program_).points.unrolled) {
    collect_names(ops);
    collect_conditions(ops, {});
  }
  if (asked_.empty()) return block(ops);
  std::string all;
  for (Expr a : asked_) all += (all.empty() ? "" : " && ") + text(a);
  if (is_line_) all += fmt::format(" && exist == {}", points_per_thread_);
  const GlobalTensors globals = globals_;
  for (auto& [name, global] : globals_) {
    if (global.strides.empty() || global.strides.back() == "1") continue;
    all += fmt::format(" && {} == 1", global.strides.back());
    global.strides.back() = "1";
  }
  out_.open("if ({}) {{", all);
  const expr::Facts facts = facts_;
  for (Expr a : asked_) facts_.assume(a);
  is_inside_ = true;
  block(ops);
  is_inside_ = false;
  facts_ = facts;
  globals_ = globals;
  out_.close("} else {");
  out_.indent(2);
  block(ops);
  out_.close();
}

}  // namespace nautilus::emit
