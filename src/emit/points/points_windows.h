// SPDX-License-Identifier: Apache-2.0
// Windows of spread points, for threads inside: every turn for every point is written out, and an
// element that several of them read is loaded once. The compiler would find some of these, but it
// rewrites places until equal ones look different.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// A loop that is a window (points_turns.h).
void write_window(PointsScope& scope, const matile::Loop& l);
// One turn for all points of the thread.
void write_turn(PointsScope& scope, const matile::Assign& a, const expr::Substitution& turns);

// Of lines that are spread: what they read whatever happens, each point for itself. Neighbours may
// read the same.
std::vector<expr::Expr> elements_of(const PointsScope& scope, expr::Expr value);
// A number of each point, with elements that several points read loaded once.
void define_each(PointsScope& scope, const std::string& own, expr::Expr value,
                 const std::vector<expr::Expr>& elements);

}  // namespace nautilus::emit
