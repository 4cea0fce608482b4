// SPDX-License-Identifier: Apache-2.0
// Gives results that read another tensor by groups of an axis, `y[f] = max(z[f / n, f % n], b[f])`,
// the axes of that tensor. So they can be computed in its kernel, which puts them into place.
#pragma once

#include "schedule/fusion/statement.h"

namespace nautilus::schedule {

// Splits an axis of the statement into two where it reads another statement's target in this way.
// Only if no statement reads the target of `s`: readers would have to know the place.
bool split_axes(Statement& s, const StatementList& list, expr::ExprPool& pool);

}  // namespace nautilus::schedule
