// SPDX-License-Identifier: Apache-2.0
// What the lowering of kernels of points asks, where it has a choice. The lines of a kernel answer
// (points_alternatives.h). Rules do (choose/points/point_rules.h) while lines are chosen, and for
// kernels that nobody could name before: those of what a last tile left, and that tile's own work.
#pragma once

#include <optional>
#include <vector>

#include "decision/decisions.h"
#include "lower/kernel/last_tile_facts.h"
#include "matile/ops.h"

namespace nautilus::lower {

struct MapNest;

// Of the loops of a kernel whose turns can be taken together.
struct TurnFacts {
  bool is_over_parts = false;  // it puts parts together, in a loop over them
  int64_t loads = 0;           // of one turn, the most
};

// Of an alternative of a kernel that puts parts together.
struct ServedFacts {
  bool has_lanes = false;         // lanes share a point; else a thread has several
  std::optional<int64_t> points;  // where it is the same for all sizes
};

// How lanes put a row in order.
struct SortShape {
  int64_t lanes = 0;    // of a row
  int64_t each = 0;     // elements of a lane
  int64_t threads = 0;  // of a CTA
};

class PointAnswers {
 public:
  virtual ~PointAnswers() = default;

  // Of a CTA; `lanes`: threads that walk along a row of a scan together, 0 without one.
  virtual int64_t threads(int64_t lanes) = 0;
  // Of a scan with vectors: threads that walk along a row, and steps that each has.
  virtual int64_t scan_lanes() = 0;
  virtual int64_t scan_each(int64_t vector) = 0;
  // Neighbouring threads along the last axis, of a kernel that has points across it.
  virtual int64_t lines_across() = 0;
  // The axes of scattered terms, those of neighbouring threads last.
  virtual ir::Names axes_of_terms(const MapNest& terms) = 0;
  // CTAs of a multiprocessor that have copies of a result.
  virtual int64_t private_ctas(int64_t threads) = 0;
  // Elements of a thread beside each other, and threads, of a kernel that writes what terms are
  // combined with.
  virtual decision::First first(int64_t element_bytes) = 0;
  // Of rows with so many elements; as many as there may be where that is not known.
  virtual SortShape sort(expr::Expr count) = 0;
  // Elements of a thread and threads of a kernel that merges runs of so many elements.
  virtual decision::Merge merge(int64_t kept) = 0;
  // Turns that are written one after the other.
  virtual int64_t turns(const TurnFacts& facts) = 0;
  // Turns of the longest windows that are written out, of a kernel that has some.
  virtual int64_t windows(const matile::Kernel& kernel) = 0;
  // CTAs that registers are left for; 1: as the compiler of the text takes them.
  virtual int64_t resident(const matile::Kernel& kernel, int64_t threads) = 0;
  // The lines of the kernels that put parts together; those that cannot be made are left out.
  virtual std::vector<ir::Block> part_alternatives() = 0;
  // Sizes that the plan launches such an alternative for; nothing: there are none.
  virtual std::optional<decision::Serves> serves(const ServedFacts& facts) = 0;
  // How much of the parts the tile that comes last has at once.
  virtual decision::LastTile last_tile(const LastTileFacts& facts) = 0;
};

}  // namespace nautilus::lower
