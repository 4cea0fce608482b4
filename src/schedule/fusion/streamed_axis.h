// SPDX-License-Identifier: Apache-2.0
// Along which of its reduced axes a seed is computed in steps.
#pragma once

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// Of the axes that the seed reduces the one that tensors have along memory; a short one only if
// all are. Its place among them.
size_t streamed_axis(const Statement& seed, const Target& target, expr::ExprPool& pool);

}  // namespace nautilus::schedule
