// SPDX-License-Identifier: Apache-2.0
#include "matile/windows.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/point_layout.h"
#include "matile/read_values.h"

namespace nautilus::matile {
namespace {

bool has_condition(const ir::Block& body) {
  bool has_one = false;
  ir::for_each_op(body, [&](const ir::Op& op) {
    const auto* a = op.get<Assign>();
    if (!a) return;
    expr::for_each(a->value, [&](expr::Expr e) { has_one |= e.op() == expr::Op::Select; });
  });
  return has_one;
}

}  // namespace

bool counts_from_zero(const Loop& l) { return l.direction == Direction::Up && l.from.is_int(0); }

bool is_held_loop(const Loop& l) { return counts_from_zero(l) && l.to.op() != expr::Op::IntConst; }

int64_t known_turns(const Loop& l) {
  const bool is_known = counts_from_zero(l) && l.to.op() == expr::Op::IntConst;
  return is_known ? std::max<int64_t>(l.to.integer(), 0) : 0;
}

int64_t all_turns(const Loop& l) {
  int64_t inner = 0;
  for (const ir::Op& op : l.body) {
    if (!op.is<Loop>()) continue;
    const int64_t turns = all_turns(op.as<Loop>());
    if (turns == 0) return 0;
    inner += turns;
  }
  return known_turns(l) * std::max<int64_t>(inner, 1);
}

int64_t window_turns(const ir::Block& body) {
  int64_t most = 0;
  for (const ir::Op& op : body) {
    const auto* l = op.get<Loop>();
    if (!l) continue;
    const int64_t turns = all_turns(*l);
    most = std::max(most, turns > 0 ? turns : window_turns(l->body));
  }
  return most;
}

bool is_window(const Loop& l) {
  return all_turns(l) > 0 && std::ranges::all_of(l.body, [](const ir::Op& op) {
           if (const auto* inner = op.get<Loop>()) return is_window(*inner);
           return op.is<Assign>();
         });
}

std::set<int64_t> sizes_of_windows(const Kernel& kernel) {
  const Points& points = points_of(kernel);
  const PointLayout layout = point_layout(kernel);
  std::set<int64_t> out;
  if (layout.lanes || reads_by_values(points)) return out;
  if (layout.patch) {
    ir::for_each_op(points.body, [&](const ir::Op& op) {
      const auto* l = op.get<Loop>();
      const int64_t turns = l ? all_turns(*l) : 0;
      if (turns > 0) out.insert(turns);
    });
    return out;
  }
  const int64_t turns = window_turns(points.body);
  const bool has_several = layout.spread || layout.is_ragged() || layout.held;
  if (turns > 0 && (has_several || has_condition(points.body))) out.insert(turns);
  return out;
}

}  // namespace nautilus::matile
