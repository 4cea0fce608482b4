// SPDX-License-Identifier: Apache-2.0
// What the step from VR-tile to MA-tile asks about a kernel, where it has a choice. The lines of
// the kernel answer (nest_choices.h); while they are chosen, rules do (choose/tiles/tile_rules.h).
// What is legal is told with the question.
#pragma once

#include <optional>

#include "decision/decisions.h"
#include "lower/tiles/tile_grid.h"

namespace nautilus::lower {

// Of copies that share a map.
struct CopyFacts {
  bool is_read_once = false;                // some of them bring what no other tile reads
  std::optional<int64_t> piece_bytes = {};  // of the rows that they bring a part of, the least
  bool has_cluster = false;                 // CTAs copy parts of a box each
};

class NestAnswers {
 public:
  virtual ~NestAnswers() = default;

  // Who works on a tile: `sharing` groups have parts of it; whether two may take turns at whole
  // tiles instead.
  virtual decision::Groups groups(int64_t sharing, bool can_alternate) = 0;
  virtual decision::TileOrder order(const GridFacts& facts) = 0;
  virtual decision::TileSource source(const decision::TileOrder& order) = 0;
  // How boxes of a tensor arrive that only element-wise work uses: this one has so many columns, a
  // copy of it, which is made of whole panels, so many.
  virtual decision::OperandPath path(ir::Name tensor, int64_t columns, int64_t copied_columns) = 0;
  // Whether such boxes go to registers as a whole; bytes of a row of this one.
  virtual bool is_whole(ir::Name tensor, int64_t row_bytes) = 0;
  // When a step with one product, of a computed operand, fetches what it needs.
  virtual decision::Moment fetch() = 0;
  // Bytes that a miss of copies brings to the second-level cache.
  virtual int64_t promoted_bytes(const CopyFacts& facts) = 0;
};

}  // namespace nautilus::lower
