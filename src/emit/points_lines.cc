// SPDX-License-Identifier: Apache-2.0
// Elements of the points of one thread that lie beside each other: loaded and stored together.
#include <algorithm>

#include "emit/identifier.h"
#include "emit/points_emitter.h"
#include "expr/walk.h"

namespace nautilus::emit {

using expr::DType;
using expr::Expr;

// Whether the elements of the points of a thread are neighbours.
bool PointsEmitter::has_line(ir::Name tensor, std::span<const Expr> indices) const {
  if (!is_line_ || !turn_.empty() || indices.empty() || indices.back() != last_) return false;
  const GlobalTensor& global = globals_.find(tensor.str())->second;
  const DType dtype = global.type.dtype;
  const bool has_lines = dtype == DType::F32 || expr::is_half(dtype);
  return has_lines && !global.is_scratch &&
         std::none_of(indices.begin(), indices.end() - 1,
                      [&](Expr index) { return expr::depends_on(index, last_); });
}

// Loads what every point of the thread reads. What a point reads under a condition stays where it
// is: it may be outside its tensor.
void PointsEmitter::load_lines(Expr value) {
  if (!is_line_) return;
  std::set<const expr::Node*> always;
  reach(value, always);
  std::vector<Expr> reads;
  expr::for_each(value, [&](Expr e) {
    if (e.op() == expr::Op::Read && always.contains(e.node()) && has_line(e.name(), e.args()))
      reads.push_back(e);
  });
  for (Expr r : reads) {
    const bool has_read = std::any_of(r.args().begin(), r.args().end(), [](Expr index) {
      return !expr::tensors_read(index).empty();
    });
    if (named_.contains(r) || walked_.contains(r) || has_read) continue;
    const std::string name = fresh("line");
    out_.line("float {}[{}];", name, points_per_thread_);
    out_.line("load_line_{}({}, p.{}, {}, {}, exist);", expr::name(r.dtype()), name,
              identifier(r.name().str()), offset(r.name().str(), r.args()), apart(r.name()));
    named_.emplace(r, name + "[beside]");
  }
}

void PointsEmitter::store_line(const matile::Write& w) {
  const std::string name = fresh("line");
  out_.line("float {}[{}];", name, points_per_thread_);
  open_points();
  name_shared({w.value});
  out_.line("{}[beside] = {};", name, text(w.value));
  close_points();
  out_.line("store_line_{}(p.{}, {}, {}, {}, exist);", expr::name(w.value.dtype()),
            identifier(w.target.str()), offset(w.target.str(), w.indices), name, apart(w.target));
}

// How far elements of neighbouring points lie from each other.
std::string PointsEmitter::apart(ir::Name tensor) const {
  return globals_.find(tensor.str())->second.strides.back();
}

}  // namespace nautilus::emit
