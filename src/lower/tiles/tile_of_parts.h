// SPDX-License-Identifier: Apache-2.0
// Where the parts of a split axis lie in the tiles that put them, as scalar code that reads them
// sees it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "expr/walk.h"
#include "matile/ops.h"

namespace nautilus::lower {

struct TileOfParts {
  std::map<std::string, const matile::Put*, std::less<>> puts;
  expr::Expr part;                                    // coordinate of a tile
  expr::Substitution positions;                       // axes of the points
  std::vector<std::pair<expr::Expr, int64_t>> lanes;  // axes of the tile
  std::vector<expr::Expr> conditions;                 // under which a place of the tile is there

  // What writes the tensor that is read; null if that is no part.
  const matile::Put* put_of(expr::Expr read) const;
};

// `body`: of a tile, with axes `tiles`; its ops must outlive `out`. False, and why, if the points
// read anything but the elements that their tile has put.
bool read_tile_of_parts(const ir::Block& body, const matile::Points& points, const ir::Axes& tiles,
                        expr::ExprPool& pool, TileOfParts& out, std::string* why);

}  // namespace nautilus::lower
