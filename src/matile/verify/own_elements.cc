// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/own_elements.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::matile {

namespace {

template <class Meeting>
bool has_meeting(const Role& role) {
  bool found = false;
  ir::for_each_op(role.body, [&](const ir::Op& op) { found |= op.is<Meeting>(); });
  return found;
}

}  // namespace

OwnElements OwnElements::of_groups(const Role& role) {
  return {role, role.index, has_meeting<Groups>(role)};
}

OwnElements OwnElements::of_ctas(const Role& role, ir::Name rank) {
  return {role, rank, has_meeting<Ctas>(role)};
}

OwnElements::OwnElements(const Role& role, ir::Name number, bool meet) : meet_(meet) {
  if (!meet_ || !number) return;
  add(number);
  while (collect(role.body)) {
  }
}

bool OwnElements::differ_in(ir::Expr e) const {
  const auto reads = expr::tensors_read(e);
  const auto vars = expr::free_vars(e);
  return std::any_of(reads.begin(), reads.end(), [&](ir::Name n) { return differ(n); }) ||
         std::any_of(vars.begin(), vars.end(), [&](ir::Expr v) { return differ(v.name()); });
}

// True if something was added.
bool OwnElements::collect(const ir::Block& ops) {
  bool is_changed = false;
  ir::for_each_op(ops, [&](const ir::Op& op) {
    if (const auto* let = op.get<Let>()) {
      if (differ_in(let->value)) is_changed |= add(let->name);
    } else if (const auto* loop = op.get<Loop>()) {
      if (differ_in(loop->from) || differ_in(loop->to)) is_changed |= add(loop->var);
    } else if (const auto* set = op.get<Set>()) {
      if (differ_in(set->value)) is_changed |= add(set->target);
    } else if (const auto* load = op.get<Load>()) {
      if (differ_in(load->value) || (load->condition && differ_in(load->condition)))
        is_changed |= add(load->target);
    }
  });
  return is_changed;
}

}  // namespace nautilus::matile
