// SPDX-License-Identifier: Apache-2.0
// Knowledge for a search from trials of other problems: the best schedules of the same equations at
// other sizes, and samples for the learned model.
#pragma once

#include "tune/search/search.h"

namespace nautilus::tune {

// The winners of problems with the same equations, target and machine, the nearest sizes first, at
// most so many. Sizes are near if their ratios are small.
std::vector<Proposal> winners_nearby(const Problem& problem, const std::vector<Trial>& trials,
                                     size_t count);

// Of all problems of the same target and machine but this one.
std::vector<Sample> samples_of_others(const Problem& problem, const std::vector<Trial>& trials);

}  // namespace nautilus::tune
