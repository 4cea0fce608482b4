// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/flow_products.h"

#include <fmt/format.h>

namespace nautilus::matile {

void ProductFlow::issue(const Dot& op) {
  IssuedProduct product{std::string(op.acc.str()), "", {}};
  const auto slot_tile = [&](ir::Name name) {
    const ir::Name ring = c_.resources.slot_tile(name).first->op->name;
    slots_.check_held(name, ring, "an operand");
    product.slots.emplace_back(ring.str(), 0);
  };
  if (c_.tiles.contains(op.a.str())) {
    tiles_.read(op.a);
    product.a_tile = op.a.str();
  } else {
    slot_tile(op.a);
  }
  slot_tile(op.b);
  FlowState& s = c_.state;
  const bool is_chain = !s.pending.empty() && s.pending.back().acc == product.acc;
  for (const IssuedProduct& p : s.pending) {
    if (p.acc != product.acc) continue;
    if (op.mode == DotMode::Init || !is_chain)
      c_.fail(fmt::format("`{}` is written while the product into it runs; a wait is missing",
                          product.acc));
    break;
  }
  if (op.mode == DotMode::Add && !s.has_value.contains(product.acc))
    c_.fail(fmt::format("`{}` is added to before it has a value", product.acc));
  s.has_value.insert(product.acc);
  s.pending.push_back(std::move(product));
}

void ProductFlow::compute(const WarpDot& op) {
  for (ir::Name name : {op.a, op.b}) {
    const RingInfo* ring = c_.resources.slot_tile(name).first;
    if (ring) slots_.check_held(name, ring->op->name, "an operand");
  }
  tiles_.write(op.acc);
}

void ProductFlow::wait(const Wait& op) {
  const auto leaves = static_cast<size_t>(op.leaves.value_or(0));
  std::deque<IssuedProduct>& pending = c_.state.pending;
  if (op.acc) {
    check_leaves(std::string(op.acc.str()), leaves);
  } else if (pending.size() <= leaves) {
    c_.fail(fmt::format("at most {} in flight here, the wait does nothing",
                        diag::counted(pending.size(), "group is", "groups are")));
  }
  while (pending.size() > leaves) pending.pop_front();
}

void ProductFlow::check_leaves(const std::string& acc, size_t leaves) {
  size_t after = 0;
  bool found = false;
  for (const IssuedProduct& p : c_.state.pending) {
    if (p.acc == acc) {
      found = true;
      after = 0;
    } else {
      ++after;
    }
  }
  if (!found)
    c_.fail(fmt::format("no product into `{}` is in flight", acc));
  else if (after != leaves)
    c_.fail(fmt::format("{} later {} may run while waiting for `{}`, not {}", after,
                        after == 1 ? "group" : "groups", acc, leaves));
}

}  // namespace nautilus::matile
