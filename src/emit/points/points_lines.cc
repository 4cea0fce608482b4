// SPDX-License-Identifier: Apache-2.0
// Elements of the points of one thread that lie beside each other: loaded and stored together.
#include <algorithm>

#include "emit/identifier.h"
#include "emit/points/points_emitter.h"
#include "expr/walk.h"

namespace nautilus::emit {

using expr::DType;
using expr::Expr;

// Whether the elements of the points of a thread are neighbours.
bool PointsEmitter::has_line(ir::Name tensor, std::span<const Expr> indices) const {
  return is_line_ && turn_.empty() && has_line_along(last_, tensor, indices);
}

bool PointsEmitter::has_line_along(Expr axis, ir::Name tensor,
                                   std::span<const Expr> indices) const {
  if (indices.empty() || indices.back() != axis) return false;
  const GlobalTensor& global = globals_.find(tensor.str())->second;
  const DType dtype = global.type.dtype;
  const bool has_lines = dtype == DType::F32 || expr::is_half(dtype);
  return has_lines && !global.is_scratch &&
         std::none_of(indices.begin(), indices.end() - 1,
                      [&](Expr index) { return expr::depends_on(index, axis); });
}

// Loads what every point of the thread reads. What a point reads under a condition stays where it
// is: it may be outside its tensor.
void PointsEmitter::load_lines(Expr value) {
  if (!is_line_) return;
  std::set<const expr::Node*> always;
  reach(value, always);
  std::vector<Expr> reads;
  expr::for_each(value, [&](Expr e) {
    if (!always.contains(e.node())) return;
    if (across_ && is_guarded(e)) load_guarded(e);
    if (e.op() != expr::Op::Read) return;
    const bool may_turn = across_ && spread_ == 0;
    if (has_line(e.name(), e.args()) || (may_turn && has_line_along(across_, e.name(), e.args())))
      reads.push_back(e);
  });
  for (Expr r : reads) {
    const bool has_read = std::any_of(r.args().begin(), r.args().end(), [](Expr index) {
      return !expr::tensors_read(index).empty();
    });
    if (named_.contains(r) || walked_.contains(r) || held_names_.contains(r) || has_read) continue;
    if (across_) {
      load_turned(r);
      continue;
    }
    const std::string name = fresh("line");
    load_line(r, name);
    named_.emplace(r, name + "[beside]");
  }
}

void PointsEmitter::load_line(Expr r, const std::string& name) {
  out_.line("float {}[{}];", name, points_per_thread_);
  if (are_lines_whole_)
    out_.line("load_whole_{}({}, p.{}, {});", expr::name(r.dtype()), name,
              identifier(r.name().str()), offset(r.name().str(), r.args()));
  else
    out_.line("load_line_{}({}, p.{}, {}, {}, exist);", expr::name(r.dtype()), name,
              identifier(r.name().str()), offset(r.name().str(), r.args()), apart(r.name()));
}

// An element of both axes of the tile under a condition, and a number elsewhere.
bool PointsEmitter::is_guarded(Expr e) const {
  return e.op() == expr::Op::Select && e[1].op() == expr::Op::Read && e[2].is_const() &&
         e.dtype() == DType::F32 && expr::depends_on(e[1], across_) &&
         expr::depends_on(e[1], last_);
}

// Those of all points of a thread, once for all its statements.
void PointsEmitter::load_guarded(Expr e) {
  const auto known = kept_lines_.find(e);
  if (known != kept_lines_.end()) {
    named_.emplace(e, known->second);
    return;
  }
  const std::string name = fresh("line");
  out_.line("float {}[{}][{}];", name, points_across_, points_per_thread_);
  open_points();
  out_.line("{}[over][beside] = {};", name, text(e));
  close_points();
  named_.emplace(e, kept_lines_.emplace(e, name + "[over][beside]").first->second);
}

// Lines of all points of a thread that has some across the last axis: along whichever of the two
// axes the tensor lies.
void PointsEmitter::load_turned(Expr r) {
  const bool is_turned = has_line_along(across_, r.name(), r.args());
  const Expr over = is_turned ? last_ : across_;
  const std::string_view number = is_turned ? "beside" : "over";
  const int64_t lines = is_turned ? points_per_thread_ : points_across_;
  const auto known = kept_lines_.find(r);
  if (known != kept_lines_.end()) {
    named_.emplace(r, known->second);
    return;
  }
  const std::string name = fresh("line");
  if (!is_turned && !expr::depends_on(r, across_)) {  // one for all lines
    load_line(r, name);
    named_.emplace(r, kept_lines_.emplace(r, name + "[beside]").first->second);
    return;
  }
  out_.line("float {}[{}][{}];", name, lines, is_turned ? points_across_ : points_per_thread_);
  out_.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", number, lines);
  std::string& at = locals_.at(std::string(over.name().str()));
  const std::string saved = at;
  at = fmt::format("({} + {})", saved, number);
  if (are_lines_whole_)
    out_.line("load_whole_{}({}[{}], p.{}, {});", expr::name(r.dtype()), name, number,
              identifier(r.name().str()), offset(r.name().str(), r.args()));
  else
    out_.line("if ({} < {}) load_line_{}({}[{}], p.{}, {}, {}, {});", number,
              is_turned ? "exist" : "exist_across", expr::name(r.dtype()), name, number,
              identifier(r.name().str()), offset(r.name().str(), r.args()), apart(r.name()),
              is_turned ? "exist_across" : "exist");
  at = saved;
  out_.close();
  const std::string element = name + (is_turned ? "[beside][over]" : "[over][beside]");
  named_.emplace(r, element);
  kept_lines_.emplace(r, element);
}

void PointsEmitter::store_line(const matile::Write& w) {
  const std::string name = fresh("line");
  if (across_) {
    open_across();
    out_.line("float {}[{}];", name, points_per_thread_);
    out_.open("UNROLL for (int beside = 0; beside < {}; ++beside) {{", points_per_thread_);
    if (!are_whole_) out_.open("if (beside < exist) {{");
    std::string& at = locals_.at(std::string(last_.name().str()));
    const std::string saved = at;
    at = fmt::format("({} + beside)", saved);
    name_shared({w.value});
    out_.line("{}[beside] = {};", name, text(w.value));
    locals_.at(std::string(last_.name().str())) = saved;
    if (!are_whole_) out_.close();
    out_.close();
    put_line(w, name);
    return close_across();
  }
  out_.line("float {}[{}];", name, points_per_thread_);
  open_points();
  name_shared({w.value});
  out_.line("{}[beside] = {};", name, text(w.value));
  close_points();
  put_line(w, name);
}

void PointsEmitter::put_line(const matile::Write& w, const std::string& name) {
  if (are_lines_whole_)
    out_.line("store_whole_{}(p.{}, {}, {});", expr::name(w.value.dtype()),
              identifier(w.target.str()), offset(w.target.str(), w.indices), name);
  else
    out_.line("store_line_{}(p.{}, {}, {}, {}, exist);", expr::name(w.value.dtype()),
              identifier(w.target.str()), offset(w.target.str(), w.indices), name, apart(w.target));
}

// How far elements of neighbouring points lie from each other.
std::string PointsEmitter::apart(ir::Name tensor) const {
  return globals_.find(tensor.str())->second.strides.back();
}

}  // namespace nautilus::emit
