// SPDX-License-Identifier: Apache-2.0
//
// The "did you mean" search of the diagnostics: the candidate that differs from a misspelt name
// by the fewest edits, if any is near enough to be worth suggesting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nautilus::base {

// Edits are insertion, deletion, replacement, and exchange of two neighbours (Damerau-Levenshtein
// in its restricted form, where no substring is edited twice).
int edit_distance(std::string_view a, std::string_view b);

// The candidate with the fewest edits, the first of several; empty when none is within
// max(1, wanted.size() / 3) edits. The view points into `candidates`.
std::string nearest_name(std::string_view wanted, const std::vector<std::string>& candidates);

// `there is no kernel `gem`; did you mean `gemm`? There are gemm, gemm_2`.
std::string no_such_name(std::string_view kind, std::string_view wanted,
                         const std::vector<std::string>& known);

}  // namespace nautilus::base
