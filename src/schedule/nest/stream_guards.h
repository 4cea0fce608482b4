// SPDX-License-Identifier: Apache-2.0
// Guards against terms beyond the axis in the last, ragged step of a reduction. A tile with several
// readers gets a suitable value there (stream_range.h); the remaining reductions guard their own
// terms.
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

  // The condition that a place of a step is inside the streamed axis; null: always. Full steps of a
  // list are known to be inside.
  Expr in_stream();

 private:
  // Whether, with the present guards, a rolled reduction gets only identities beyond the streamed
  // extent.
  bool is_identity_past_end(size_t k);

  // A contraction with a tensor operand that reads as 0 beyond the axis, and another operand that
  // is finite there. Results of reductions are finite unless the axis is empty; the first step runs
  // even then.
  bool is_zero_filled(size_t k, Expr axis);

  // True unless a fact says that the axis has points.
  bool may_be_empty(Expr axis);
  // Whether the value depends on results of other kernels; elements along `but_along` do not count.
  bool reads_results(Expr e, Expr but_along = {}) const;

  NestFrame& f_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> inputs_;
  std::vector<RangeGuard> guards_;
  std::set<size_t> own_guard_;
};

}  // namespace nautilus::schedule
