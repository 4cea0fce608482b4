// SPDX-License-Identifier: Apache-2.0
// Sums that lanes carry through loops as shares and combine after them (defer_lanes.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "matile/rewrite.h"

namespace nautilus::matile {

// The tiles to carry as partial sums together with `start`, and where exchanges go: the op before
// which each tile is combined. Empty if that is not possible or gains nothing. `alike` are the
// tiles with the layout of the one to defer. `can_share`: a value that all lanes hold may be
// divided into equal shares.
std::optional<std::pair<Names, std::vector<std::pair<ir::Op, std::string>>>> plan_deferral(
    const ir::Block& tile_body, const Names& alike, bool can_share, const std::string& start);

// A value that every lane holds whole, and not 0: an initial element.
bool is_held_whole(const Set& set, const Names& partial);

}  // namespace nautilus::matile
