// SPDX-License-Identifier: Apache-2.0
// The order in which a nest fetches the slot tiles of a ring, as one loop where that is possible.
// Peeled first and last iterations and consecutive loops over adjacent ranges become one sequence
// again, so that a loading role needs no copies of the loop's body.
//
//   fetch ks from Km[80 * (nt - 1)]                 loop n from nt - 1 down 0
//   loop n from nt - 2 down nl                        fetch ks from Km[80 * n]
//     fetch ks from Km[80 * n]                ->
//   loop n from min(nt - 2, nl - 1) down 0
//     fetch ks from Km[80 * n]
#pragma once

#include <string>
#include <vector>

#include "matile/ops.h"
#include "matile/passes/roles/nest_scalars.h"

namespace nautilus::matile {

struct RingSequence {
  enum class Kind : uint8_t {
    Once,     // one fetch per tile
    Range,    // one loop
    Literal,  // some other nest
  };
  Kind kind = Kind::Literal;
  // Range: from, to as in `loop`; Range and Once: coordinates of every fetch of the slot.
  ir::Name var;
  expr::Expr from;
  Direction direction = Direction::Up;
  expr::Expr to;
  std::vector<Fetch> fetches;
};

// `slot_tiles` are those of the ring, fetched together wherever one of them is.
RingSequence ring_sequence(const ir::Block& tile_body, const std::vector<std::string>& slot_tiles,
                           const Scalars& scalars, expr::ExprPool& pool);

}  // namespace nautilus::matile
