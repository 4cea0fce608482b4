// SPDX-License-Identifier: Apache-2.0
// The steps of a role that can begin with the old reference (speculate.h): what is computed from
// it, how to detect that it lagged too far, and how to begin again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "matile/rewrite.h"
#include "target/target.h"

namespace nautilus::matile {

// Weights with a tested range.
struct WeightCheck {
  ir::Name tile;              // that has them; none: they are only in the sum
  std::optional<size_t> sum;  // the fold of the block that sums them; none: one has to be made
  bool is_signed = false;     // the sum is one of absolute values
  double range = 0;           // the limit of the sum
};

// Places are those of ops in a block.
struct SpeculativeStep {
  // Compute the step's extreme value, only for the vote and its branches.
  std::vector<size_t> extreme;
  size_t vote = 0;
  size_t branch = 0;          // moves the reference
  std::vector<size_t> weigh;  // made from the reference, in order, up to the weights
  std::vector<WeightCheck> checks;
  size_t end = 0;               // the last of weigh and sums
  std::vector<size_t> later;    // before the end, but to be executed with the final weights
  std::vector<ir::Expr> unset;  // conditions by row that the reference has not moved yet
  std::vector<size_t> again;    // make the scores that weighing overwrites: one product, then sets
  // Of the product's operands, which would be too early if it is repeated.
  std::vector<size_t> releases;
  std::vector<ir::Name> kept;  // scores that are copied instead

  // Chosen by rule: repeating one product gives the weights, and an existing sum shows their range.
  bool is_cheap = false;
};

class SpeculativeSteps {
 public:
  SpeculativeSteps(const Kernel& kernel, const Role& role, const target::Matrix& matrix,
                   expr::ExprPool& pool);

  // The step of a block with its vote at that place; nothing, and why, if there is none.
  std::optional<SpeculativeStep> at(const ir::Block& block, size_t vote, std::string* why) const;

  // Columns of a product's operand that is a slot tile; 0 for others.
  int64_t depth(ir::Name operand) const;

 private:
  struct Search;
  const SlotTile* slot_tile(ir::Name name, ir::Name* ring) const;
  bool find_extreme(Search& s) const;
  bool find_weights(Search& s) const;
  bool find_checks(Search& s) const;
  void find_weight_checks(Search& s) const;
  bool find_later(Search& s) const;
  bool find_others(Search& s) const;
  bool find_guards(Search& s) const;
  bool find_ranges(Search& s) const;
  bool find_way_back(Search& s) const;
  bool find_repetition(Search& s) const;

  const Kernel& kernel_;
  const Role& role_;
  const target::Matrix& matrix_;
  expr::ExprPool& pool_;
  std::map<std::string, Tile, std::less<>> tiles_;
};

}  // namespace nautilus::matile
