// SPDX-License-Identifier: Apache-2.0
// A reduction along a long row in two steps, pieces of the row first:
//
//   for i < 4 map                             for i < 4, p < 245 map
//     init m[i] = -inf                          init m_parts[i, p] = -inf
//     for j < 1000000 reduce       becomes      for k < 4096 reduce
//       update m[i] max X[i, j]                   update m_parts[i, p] max
//                                                     where(p*4096 + k < 1000000, X[i, p*4096 + k],
//                                                     -inf)
//                                             for i < 4 map
//                                               init m[i] = -inf
//                                               for p < 245 reduce
//                                                 update m[i] max m_parts[i, p]
//
// A piece is a row of its own, so that few long rows are as many CTAs as the machine has room for.
// Terms that need a number of a reduction with such pieces use the number of their own piece; the
// results move when pieces are combined. Polynomials move as in moving_stages.h, exponentials of
// extremes by one factor (algebra/separate.h). Terms that count only where an extreme is attained
// (algebra/attained.h) count in pieces that attain it:
//
//   s_parts[i, p] = sum exp(X[i, j] - m_parts[i, p])
//   s[i] = sum s_parts[i, p] * exp(m_parts[i, p] - m[i])
//   a_parts[i, p] = min where(X[i, j] == m_parts[i, p], j, inf)
//   a[i] = min where(m_parts[i, p] == m[i], a_parts[i, p], inf)
//
// Elements that the terms read are computed in them. Exact over the reals.
// Tests: test/choose/pieces.scalar
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "algebra/sign.h"
#include "choose/steps/step_scope.h"

namespace nautilus::choose {

// How pieces are made.
struct PieceLine {
  int64_t length = 0;    // of a piece, in terms
  bool may_move = true;  // terms use the numbers of their own piece
  // That the terms compute; null: all that can be computed there.
  const ir::Names* elements = nullptr;
};

struct PieceStages {
  std::vector<std::pair<ir::Name, ir::TensorType>> buffers;
  ir::Name against;                   // the reduction that gives the terms' number; or none
  ir::Names elements;                 // that the terms compute, in the order of the list
  std::vector<lower::MapNest> first;  // of pieces
  lower::MapNest rest;                // in place of the nest
};

// For the nest at `place`. Nothing if it cannot have pieces: it must be a reduction of f32 over one
// axis that reads each element of a tensor once.
std::optional<PieceStages> piece_stages(std::span<const lower::MapNest> nests, size_t place,
                                        const PieceLine& line, const algebra::Signs& signs,
                                        const StepScope& scope);

}  // namespace nautilus::choose
