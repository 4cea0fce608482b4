// SPDX-License-Identifier: Apache-2.0
// Along which of its reduced axes a seed is computed in steps.
#pragma once

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// The index, among the axes that the seed reduces, of the axis that is contiguous in tensors; a
// short axis only if all are short.
size_t streamed_axis(const Statement& seed, const Target& target, expr::ExprPool& pool);

}  // namespace nautilus::schedule
