// SPDX-License-Identifier: Apache-2.0
// Results that read another tensor by groups of an axis, `y[f] = max(z[f / n, f % n], b[f])`, have
// its axes: they can be computed in its kernel, and are put into place from there.
#pragma once

#include "schedule/fusion/statement.h"

namespace nautilus::schedule {

// Makes two axes of one where the statement reads so what another one computes, and nobody reads
// its own target: readers would have to know the place.
bool split_axes(Statement& s, const StatementList& list, expr::ExprPool& pool);

}  // namespace nautilus::schedule
