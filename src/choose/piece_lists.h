// SPDX-License-Identifier: Apache-2.0
// Pieces of rows (piece_stages.h) in a list of nests: for which reductions they are worth a look,
// where their steps stand, and what was made of them.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "choose/piece_stages.h"
#include "target/target.h"

namespace nautilus::choose {

// The length of the pieces that a reduction of the list is put together from; nothing if it is not.
std::optional<int64_t> pieces_of(std::span<const lower::MapNest> nests, ir::Name reduction);

// Puts them into the list they were made for: first steps beside those of the reductions before it,
// and elements that what is left does not need behind that; those that nothing needs, `kept` among
// it, are gone. Returns the place of what is left.
size_t put_pieces(std::vector<lower::MapNest>& nests, size_t place, const PieceStages& made,
                  const std::set<std::string>& kept);

// The length of pieces that fills the machine, if the reduction is along few long rows; else
// nothing.
std::optional<int64_t> usual_piece(const lower::MapNest& nest, const target::Target& target);

// The same along an axis across memory that has many elements beside few points: as many as a
// thread keeps in registers, so that what several reductions need of a piece is read once. `usual`:
// about how long an axis is.
std::optional<int64_t> usual_column_piece(const lower::MapNest& nest, const target::Target& target,
                                          const std::function<double(expr::Expr)>& usual,
                                          expr::ExprPool& pool);

}  // namespace nautilus::choose
