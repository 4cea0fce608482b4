// SPDX-License-Identifier: Apache-2.0
// What the loads and loops of a nest say about the order of its tiles.
#pragma once

#include "lower/tiles/nest_scope.h"
#include "lower/tiles/tile_grid.h"

namespace nautilus::lower {

// `axes` are those of the grid, `body` what stands in it.
GridFacts grid_facts(const ir::Axes& axes, const ir::Block& body, const NestScope& scope);

}  // namespace nautilus::lower
