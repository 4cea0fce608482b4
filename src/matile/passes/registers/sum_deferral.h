// SPDX-License-Identifier: Apache-2.0
// Sums that lanes carry through loops as shares and combine behind them (defer_lanes.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "matile/rewrite.h"

namespace nautilus::matile {

// The tiles to carry as partial sums together with `start`, and where exchanges go: the op in
// front of which each tile is combined. Empty if that does not work or gains nothing.
// `alike` are the tiles that lie as the one to defer. `can_share`: a value that all lanes hold
// may be given to them in equal parts.
std::optional<std::pair<Names, std::vector<std::pair<ir::Op, std::string>>>> plan_deferral(
    const ir::Block& tile_body, const Names& alike, bool can_share, const std::string& start);

// A value that every lane holds whole, and not 0: an initial element.
bool is_held_whole(const Set& set, const Names& partial);

}  // namespace nautilus::matile
