// SPDX-License-Identifier: Apache-2.0
// Patches: a thread has points along two axes. The turns of its loops that are known are written
// out for all of them, an element that several points or turns read is loaded once, and what a
// padded element asks is asked before the loops. So that all threads have whole patches, those at
// the end of an axis have the last points of it; the ones that a neighbour has as well they leave
// to it when they write.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// Once for whole patches of tensors that lie along memory, and point by point for the others.
void write_patches(PointsScope& scope, const ir::Block& ops);
// Turns that are known are written out, as far as instructions for them have room; a loop around
// them, or one whose turns are not known, has the points of one turn written out.
void write_patch_loop(PointsScope& scope, const matile::Loop& l);
// Names the element; loads it if no point or turn before has.
void load_in_patch(PointsScope& scope, expr::Expr element);
// Writes a point's element, unless a neighbour has the point as well. Points of a thread move from
// its first one by numbers.
void write_patch(PointsScope& scope, const matile::Write& w);

}  // namespace nautilus::emit
