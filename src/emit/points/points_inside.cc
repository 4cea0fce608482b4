// SPDX-License-Identifier: Apache-2.0
// Threads that are inside: a condition of `where` that says where in its tensor a point is (the
// edge of an image, the padding of a window) holds for all points of the thread and all turns of
// its loops. It is asked once for them, at the worst turns; then loads have no branches, and those
// that windows share are loaded once. The other threads ask each time.
#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/points_emitter.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/loop_loads.h"
#include "matile/windows.h"

namespace nautilus::emit {

using expr::Expr;
using expr::Poly;
using EK = expr::Op;

namespace {

// A comparison at the worst values of variables that run from 0, or null.
// `own`: how far the points of a thread lie from its first one, along their axes.
Expr at_worst(Expr comparison, const std::vector<std::pair<Expr, int64_t>>& ranges,
              const std::vector<std::pair<Expr, int64_t>>& own, expr::ExprPool& pool) {
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
  for (const auto& [axis, farthest] : own) {
    if (farthest > 0) put(axis, farthest, true);
  }
  if (!most) return {};
  return pool.binary(is_strict ? EK::Lt : EK::Le, expr::to_expr(pool, *most), pool.integer(0));
}

}  // namespace

void PointsEmitter::ask_where(Expr guarded, const Ranges& ranges) {
  const Expr condition = guarded[0];
  if (inside_.contains(condition)) return;
  // Where a row has few threads, one of a warp in two is at its end: what is asked of columns stays
  // with the loads, and a warp is inside or it is not.
  const bool may_stay =
      spread_ > 0 && points_per_thread_ == 1 && across_ && matile::is_load_where(guarded);
  std::vector<Expr> parts = {condition};
  std::vector<Expr> asked;
  Expr left;
  while (!parts.empty()) {
    const Expr part = parts.back();
    parts.pop_back();
    if (part.op() == EK::And) {
      parts.push_back(part[1]);
      parts.push_back(part[0]);
      continue;
    }
    if (may_stay && expr::depends_on(part, last_)) {
      left = left ? pool_.binary(EK::And, left, part) : part;
      continue;
    }
    const bool is_known = expr::tensors_read(part).empty() &&
                          std::ranges::none_of(expr::free_vars(part), [&](Expr v) {
                            return own_.contains(v.name().str());
                          });
    const int64_t apart = is_line_ ? 1 : std::max<int64_t>(spread_, 1);
    Ranges own = {{last_, (points_per_thread_ - 1) * apart}};
    if (spread_ > 0 && across_) own.emplace_back(across_, points_across_ - 1);
    const Expr worst = is_known ? at_worst(part, ranges, own, pool_) : Expr();
    if (!worst) return;
    asked.push_back(worst);
  }
  if (asked.empty()) return;
  inside_.insert(condition);
  if (left) left_.emplace(condition, left);
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
      if (matile::known_turns(*l) == 0) own_.emplace(l->var.str());
      collect_names(l->body);
    }
  }
}

void PointsEmitter::collect_conditions(const ir::Block& body, Ranges ranges) {
  for (const ir::Op& op : body) {
    if (const auto* l = op.get<matile::Loop>()) {
      Ranges deeper = ranges;
      if (const int64_t turns = matile::known_turns(*l))
        deeper.emplace_back(pool_.index(l->var), turns);
      collect_conditions(l->body, deeper);
      continue;
    }
    // Outside of loops of known turns there is nothing to share.
    if (ranges.empty() || !op.is<matile::Assign>()) continue;
    expr::for_each(op.as<matile::Assign>().value, [&](Expr e) {
      if (e.op() == EK::Select) ask_where(e, ranges);
    });
  }
}

// What a guarded element is for threads inside.
Expr PointsEmitter::inside(Expr guarded) {
  const auto it = left_.find(guarded[0]);
  return it == left_.end() ? guarded[1] : pool_.select(it->second, guarded[1], guarded[2]);
}

std::string PointsEmitter::load_where(Expr e, const std::string& at) {
  const Expr read = e[1].op() == EK::Cast ? e[1][0] : e[1];
  // All parts are asked: a branch costs more than they do.
  std::string all;
  const auto add = [&](const std::string& part) { all += (all.empty() ? "" : " & ") + part; };
  if (is_near_ && are_whole_ && points_across_ > 1) add("(over < exist_across)");
  if (is_near_ && are_whole_ && points_per_thread_ > 1) add("(beside < exist)");
  std::vector<Expr> parts = {e[0]};
  while (!parts.empty()) {
    const Expr part = parts.back();
    parts.pop_back();
    const bool reads = !expr::tensors_read(part).empty();  // what is read may be nowhere else
    if (part.op() == EK::And && !reads) {
      parts.push_back(part[1]);
      parts.push_back(part[0]);
    } else {
      add("(" + text(part) + ")");
    }
  }
  return fmt::format("load_{}_where({}, p.{}, {}, {})", expr::name(read.dtype()), all,
                     identifier(read.name().str()),
                     at.empty() ? offset(read.name().str(), read.args()) : at, text(e[2]));
}

// Whether it reads nothing but under conditions, so that it can be computed for points that do not
// exist.
bool PointsEmitter::is_guarded_always(Expr e) {
  if (matile::is_load_where(e)) return is_guarded_always(e[0]);
  return e.op() != EK::Read &&
         std::ranges::all_of(e.args(), [](Expr a) { return is_guarded_always(a); });
}

// Text of the condition that all lines of the kernel lie on whole vectors; empty if some tensor's
// cannot.
std::string PointsEmitter::are_aligned(const ir::Block& ops) const {
  std::set<std::string, std::less<>> lines;
  const auto add = [&](ir::Name tensor, std::span<const Expr> indices) {
    if (has_line(tensor, indices)) lines.emplace(tensor.str());
  };
  ir::for_each_op(ops, [&](const ir::Op& op) {
    if (const auto* w = op.get<matile::Write>()) add(w->target, w->indices);
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() == EK::Read) add(e.name(), e.args());
      });
    });
  });
  std::string all;
  const int64_t vector = ir::target_of(program_).memory.vector_bytes;
  for (const std::string& name : lines) {
    const GlobalTensor& global = globals_.find(name)->second;
    const int64_t bytes = expr::bytes(global.type.dtype);
    if (points_per_thread_ * bytes % vector != 0) return "";
    all += fmt::format("{}((u64)p.{}", all.empty() ? "" : " && ", identifier(name));
    for (size_t k = 0; k + 1 < global.strides.size(); ++k)
      all += fmt::format(" | {} * {}", bytes, global.strides[k]);
    all += fmt::format(") % {} == 0", vector);
  }
  return all;
}

// Text of the condition that all points of a thread are inside and exist.
std::string PointsEmitter::are_inside() {
  std::string all;
  const auto add = [&](const std::string& one) { all += (all.empty() ? "" : " && ") + one; };
  for (Expr a : asked_) add(text(a));
  const bool has_line = is_line_ || (spread_ > 0 && points_per_thread_ > 1);
  if (has_line) add(fmt::format("exist == {}", points_per_thread_));
  if (spread_ > 0 && points_across_ > 1) add(fmt::format("exist_across == {}", points_across_));
  return all;
}

// The block for threads inside.
void PointsEmitter::fast(const ir::Block& ops, const std::string& inside) {
  out_.open("if ({}) {{", inside);
  const expr::Facts facts = facts_;
  for (Expr a : asked_) facts_.assume(a);
  is_inside_ = are_whole_ = true;
  held_ > 0 ? hold(ops) : block(ops);
  kept_lines_.clear();
  window_places_.clear();
  is_inside_ = are_whole_ = false;
  facts_ = facts;
}

// The block twice where conditions can be asked once: for threads inside, and for the others. Where
// points are spread, threads at an edge are in every row: they have a third text, in which elements
// lie beside each other and turns are written one by one, too.
void PointsEmitter::body(const ir::Block& ops) {
  // Of a window whose turns are not written one by one nothing is shared.
  are_written_out_ = matile::window_turns(ops) <= windows_;
  if (lanes_ == 1 && are_written_out_) {
    collect_names(ops);
    collect_conditions(ops, {});
  }
  std::string inside = are_inside();
  const std::string aligned = is_line_ && (!across_ || spread_ > 0) ? are_aligned(ops) : "";
  const bool has_fast =
      held_ > 0 || !asked_.empty() || !aligned.empty() || (spread_ > 0 && !inside.empty());
  if (!has_fast) return block(ops);
  if (!aligned.empty()) inside += " && " + aligned;
  const GlobalTensors globals = globals_;
  std::string along;
  for (auto& [name, global] : globals_) {
    if (global.strides.empty() || global.strides.back() == "1") continue;
    along += fmt::format("{}{} == 1", along.empty() ? "" : " && ", global.strides.back());
    global.strides.back() = "1";
  }
  const bool has_edges = spread_ > 0 && !asked_.empty() && !along.empty();
  if (has_edges)
    out_.open("if ({}) {{", along);
  else if (!along.empty())
    inside += (inside.empty() ? "" : " && ") + along;
  if (inside.empty()) inside = "true";  // it only holds what loops read
  are_lines_whole_ = !aligned.empty();
  fast(ops, inside);
  are_lines_whole_ = false;
  if (has_edges) {
    out_.close("} else {");
    out_.indent(2);
    is_near_ = true;
    block(ops);
    is_near_ = false;
    out_.close();
  }
  globals_ = globals;
  out_.close("} else {");
  out_.indent(2);
  block(ops);
  out_.close();
}

}  // namespace nautilus::emit
