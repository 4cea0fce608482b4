// SPDX-License-Identifier: Apache-2.0
// The state of a search for a speculative step; only for speculative_step.cc and
// speculative_way_back.cc.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "matile/passes/branches/speculative_step.h"

namespace nautilus::matile {

struct SpeculativeSteps::Search {
  const ir::Block& block;
  SpeculativeStep step;
  std::string why = {};
  std::string local = {};  // the step's extreme value
  ir::Name reference = {};
  ir::Name vote = {};
  expr::Expr lag = {};                // the number of powers of two by which the reference lags
  Touched moved = {};                 // by the branch
  Names guessed = {};                 // tiles made from the reference
  Names rows = {};                    // the reference, and those of them with one value per row
  std::vector<Touched> touched = {};  // of each op of the block

  bool no(std::string reason) {
    why = std::move(reason);
    return false;
  }
  // Under the vote, where everything is known.
  bool is_branch(size_t k) const {
    const auto* branch = block[k].get<If>();
    return branch && branch->condition.op() == expr::Op::Var && branch->condition.name() == vote;
  }
};

inline bool meets(const Names& a, const Names& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& n) { return b.contains(n); });
}

inline bool has(const std::vector<size_t>& places, size_t k) {
  return std::find(places.begin(), places.end(), k) != places.end();
}

inline bool is_check(const SpeculativeStep& step, size_t k) {
  return std::any_of(step.checks.begin(), step.checks.end(),
                     [&](const WeightCheck& c) { return c.sum == k; });
}

inline bool reads_vote(expr::Expr e, ir::Name vote) {
  bool found = false;
  expr::for_each(e, [&](expr::Expr x) { found |= x.op() == expr::Op::Var && x.name() == vote; });
  return found;
}

}  // namespace nautilus::matile
