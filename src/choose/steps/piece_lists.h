// SPDX-License-Identifier: Apache-2.0
// Pieces of rows (piece_stages.h) in a list of nests: which reductions may have them, where their
// steps go, and which reductions have them already.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "choose/steps/piece_stages.h"
#include "target/target.h"

namespace nautilus::choose {

// The length of the pieces that a reduction of the list combines; nothing if it combines none.
std::optional<int64_t> pieces_of(std::span<const lower::MapNest> nests, ir::Name reduction);

// Puts the pieces into their list of nests. The first steps go next to those of the reductions
// before it. Elements that the combining reduction does not need go after that reduction; elements
// that nothing needs, `kept` included, are dropped. Returns the place of the combining reduction.
size_t put_pieces(std::vector<lower::MapNest>& nests, size_t place, const PieceStages& made,
                  const std::set<std::string>& kept);

// The length of pieces that fills the machine, if the reduction is along few long rows; else
// nothing.
std::optional<int64_t> usual_piece(const lower::MapNest& nest, const target::Target& target);

// The same along an axis that is not contiguous, with many elements for few points: as many
// elements as a thread holds in registers, so that a piece is read once for several reductions.
// `usual`: about how long an axis is.
std::optional<int64_t> usual_column_piece(const lower::MapNest& nest, const target::Target& target,
                                          const std::function<double(expr::Expr)>& usual,
                                          expr::ExprPool& pool);

}  // namespace nautilus::choose
