// SPDX-License-Identifier: Apache-2.0
// Results of scheduling a program, for the next time that the same program is scheduled.
#pragma once

#include "schedule/choose/rank_memo.h"
#include "schedule/fusion/fusion_memo.h"

namespace nautilus::schedule {

// Belongs to one pool of expressions.
struct ScheduleMemo {
  FusionMemo fusions;
  RankMemo ranks;
};

}  // namespace nautilus::schedule
