// SPDX-License-Identifier: Apache-2.0
// Loops over the parts of an axis: few turns, all of whose loads are wanted at once.
#include <algorithm>
#include <utility>

#include "emit/points/points_emitter.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using ir::Op;

}  // namespace

bool PointsEmitter::is_over_parts(Expr to) const {
  return to.op() == expr::Op::Var && plan_sizes_.contains(to.name().str());
}

// The parts of an axis are few, and all of them are wanted at once: the loads of some turns are
// under way together, the last turns too, which a loop unrolled by the compiler would take one by
// one.
void PointsEmitter::over_parts(ir::Name name, std::string_view from, const std::string& to,
                               const ir::Block& body) {
  const int64_t ahead = unroll_ * lanes_;
  const std::string var = locals_.find(name.str())->second;
  out_.open("for (long long first = {0}; first < {1}; first += {2}) {{", from, to, ahead);
  walk_reads(name, body);
  out_.line("const int left = (int)({0} - first < {1} ? {0} - first : {1});", to, ahead);
  out_.open("UNROLL for (int more = 0; more < {}; more += {}) {{", ahead, lanes_);
  // One condition for each load: under a branch around several, turns would wait for each other.
  const bool is_flat =
      points_per_thread_ > 1 &&
      std::none_of(body.begin(), body.end(), [](const Op& op) { return op.is<matile::Loop>(); });
  if (is_flat)
    turn_ = "more < left";
  else
    out_.open("if (more < left) {{");
  out_.line("const long long {} = first + more;", var);
  block(body);
  turn_.clear();
  if (!is_flat) out_.close();
  out_.close();
  out_.close();
  walked_.clear();
}

// Places of elements that a loop over parts walks over in equal steps: the place in its first
// turn and the step are computed once, in place of products of 64 bits in every turn.
void PointsEmitter::walk_reads(ir::Name var, const ir::Block& body) {
  std::vector<Expr> reads;
  std::set<std::string, std::less<>> defined;
  for (const Op& op : body) {
    Expr value;
    if (const auto* a = op.get<matile::Assign>()) value = a->value;
    if (const auto* l = op.get<matile::Let>()) {
      value = l->value;
      defined.emplace(l->name.str());
    }
    if (!value) continue;
    expr::for_each(value, [&](Expr e) {
      if (e.op() == expr::Op::Read && std::find(reads.begin(), reads.end(), e) == reads.end())
        reads.push_back(e);
    });
  }
  for (Expr r : reads) {
    const std::string step = step_of(r, pool_.index(var), defined);
    if (step.empty()) continue;
    const std::string next = points_per_thread_ > 1 ? next_of(r) : "";
    const std::string at = fresh("at");
    const auto old = std::exchange(locals_[std::string(var.str())], "first");
    out_.line("const u64 {} = {};", at, offset(r.name().str(), r.args()));
    locals_[std::string(var.str())] = old;
    const std::string by = fresh("step");
    out_.line("const u64 {} = {};", by, step);
    walked_.emplace(r, fmt::format("{} + (u64)more * {}{}", at, by, next));
  }
}

// Text of what a turn of the loop adds to the place of an element, if the variable is an index
// of its own and the others are known before the loop; empty otherwise.
std::string PointsEmitter::step_of(Expr read, Expr var,
                                   const std::set<std::string, std::less<>>& defined) const {
  std::string step;
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr index = read.args()[k];
    if (!expr::depends_on(index, var)) {
      const bool is_last = points_per_thread_ > 1 && expr::depends_on(index, last_);
      if (is_last ? index != last_ : !is_settled(index, defined)) return "";
      continue;
    }
    if (index != var || !step.empty()) return "";
    step = globals_.find(read.name().str())->second.step("1", k);
  }
  return step;
}

// Text of what the next point of a thread adds.
std::string PointsEmitter::next_of(Expr read) const {
  std::string next;
  for (size_t k = 0; k < read.args().size(); ++k) {
    if (read.args()[k] == last_)
      next += " + " + globals_.find(read.name().str())->second.step("beside", k);
  }
  return next;
}

// Whether an index is made of what a loop's body neither defines nor changes.
bool PointsEmitter::is_settled(Expr index,
                               const std::set<std::string, std::less<>>& defined) const {
  bool is_known = expr::tensors_read(index).empty();
  expr::for_each(index, [&](Expr e) {
    if (e.op() != expr::Op::Var) return;
    is_known &= !defined.contains(e.name().str()) && !dtypes_.contains(e.name().str());
  });
  return is_known;
}

}  // namespace nautilus::emit
