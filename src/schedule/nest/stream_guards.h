// SPDX-License-Identifier: Apache-2.0
// What keeps reductions from counting what lies beyond their axis in the last, ragged step: a tile
// that many read is given a value there (stream_range.h), and who is left guards its own terms.
#pragma once

#include "expr/bounds/bounds.h"
#include "schedule/nest/nest_frame.h"

namespace nautilus::schedule {

class StreamGuards {
 public:
  explicit StreamGuards(NestFrame& frame);

  // Once members have places and the steps are known.
  void choose();

  // The guard that a member's tile has; null: none.
  const RangeGuard* find(size_t k) const;
  // Whether a reduction along the axis must guard its own terms.
  bool is_own(size_t k, Expr axis);

  // The condition that a place of a step lies inside the streamed axis; null: it always does.
  // Steps of a list that are full are known to.
  Expr in_stream();

 private:
  // Whether a rolled reduction gets nothing from beyond the streamed extent as things stand.
  bool is_identity_past_end(size_t k);

  // A contraction whose tensor operand reads as 0 beyond the axis, and whose other operand is
  // finite there. Results of reductions are, unless they are over nothing: the first step runs even
  // then.
  bool is_zero_filled(size_t k, Expr axis);

  // No fact says that an axis has points.
  bool may_be_empty(Expr axis);
  // Whether the value depends on what other kernels computed, elements along an axis left out.
  bool reads_results(Expr e, Expr but_along = {}) const;

  NestFrame& f_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> inputs_;
  std::vector<RangeGuard> guards_;
  std::set<size_t> own_guard_;
};

}  // namespace nautilus::schedule
