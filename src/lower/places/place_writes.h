// SPDX-License-Identifier: Apache-2.0
// What kernels that find the places of a row's elements (sort_nests.h) write for each place: the
// element that has it to the results that choose it, and the place itself where somebody reads it.
// The place and the element's index are called as in the nests. Test: test/lower/sort.naut
#pragma once

#include "lower/places/sort_nests.h"
#include "lower/points/points_alternatives.h"

namespace nautilus::lower {

// Whether somebody reads the count. `kept`: what is read behind the kernel.
bool keeps_counts(const SortNests& nests, const std::set<std::string>& kept);

// How many of the first places are asked for.
expr::Expr places_asked(const SortNests& nests, const std::set<std::string>& kept,
                        expr::ExprPool& pool);

// That an element has a place; null: each has.
expr::Expr has_place(const SortNests& nests, expr::ExprPool& pool);

// For one place that is less than those that are asked for.
ir::Block place_writes(const PointsContext& points, const SortNests& nests, expr::ExprPool& pool);

}  // namespace nautilus::lower
