// SPDX-License-Identifier: Apache-2.0
// Threads that are inside: a condition of `where` that says where in its tensor a point is (the
// edge of an image, the padding of a window) holds for all points of the thread and all turns of
// its loops. It is asked once for them, at the worst turns; then loads have no branches, and those
// that windows share are loaded once. The other threads ask each time.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// Finds the conditions of a block that can be asked once.
void collect_conditions(PointsScope& scope, const ir::Block& body);
// Text of the condition that all points of a thread are inside and exist.
std::string are_inside(PointsScope& scope);

// Whether it is an element under a condition that holds inside, and what it is there.
bool holds_inside(const PointsScope& scope, expr::Expr e);
expr::Expr element_inside(PointsScope& scope, expr::Expr guarded);

// The load of an element under a condition (matile::is_load_where), with no branch; `at`: the text
// of its place, if that is known.
std::string load_where(PointsScope& scope, expr::Expr e, const std::string& at = "");
// Whether it reads nothing but under conditions, so that it can be computed for points that do not
// exist.
bool is_guarded_always(expr::Expr e);

}  // namespace nautilus::emit
