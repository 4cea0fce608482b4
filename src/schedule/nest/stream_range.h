// SPDX-License-Identifier: Apache-2.0
// Which steps along the streamed axis a warp group needs.
//
// Answers two questions, both with the final values of the definition. First: where does a mask
// make every term of every rolled reduction its identity? The loop skips steps that are entirely
// masked. Bounds follow by arithmetic where the mask compares positions, also with numbers that are
// read for the whole tile, and otherwise from summaries of the data (live_steps.h). Second: which
// tile, given a limit value outside the streamed axis' extent, does the same for the ragged last
// step?
#pragma once

#include "decision/decisions.h"
#include "schedule/fusion/tiling.h"
#include "schedule/nest/limits.h"
#include "schedule/nest/live_steps.h"

namespace nautilus::schedule {

struct StepRange {
  Expr first;               // number of the first step
  Expr count;               // number after the last step
  std::vector<Expr> masks;  // the conditions that bound it
  LiveSteps live;           // the live steps, if data bounds it
  // Conjuncts of masks and their replacements in the kernel, which are equal there.
  expr::Substitution instead;
  // How steps are left out; nothing: no mask hides whole steps, and there is no choice.
  std::optional<decision::LiveKind> kind;
  std::string refused;  // why the kind that was asked for is refused; empty: it is followed
};

// `asked`: how to leave steps out. Without it: by a list where a mask is given point by point, else
// by a range from the masks on data and positions.
StepRange step_range(const FusionScope& scope, const std::vector<size_t>& rolled,
                     const Tiling& tiling, std::optional<decision::LiveKind> asked, Names& names);

// A tile that becomes `value` beyond the streamed extent, so that `rolled` gets only identities.
struct RangeGuard {
  size_t member;
  double value;
};
// The value of a member's expression beyond the extent, with these guards.
Limit limit_beyond(const FusionScope& scope, Expr e, const std::vector<RangeGuard>& guards);
// Whether a rolled reduction then gets its identity.
bool is_identity_beyond(const FusionScope& scope, const Member& rolled,
                        const std::vector<RangeGuard>& guards);
// A guard that achieves this together with the present ones; empty if there is none.
std::optional<RangeGuard> range_guard(const FusionScope& scope, const Member& rolled,
                                      const std::vector<RangeGuard>& present,
                                      const std::vector<size_t>& candidates);

}  // namespace nautilus::schedule
