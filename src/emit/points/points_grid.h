// SPDX-License-Identifier: Apache-2.0
// Which points of a kernel of scalar code a thread has. It is known before a line is written, and
// all parts of the text ask it.
#pragma once

#include <cstdint>
#include <string>

#include "expr/expr.h"
#include "matile/point_layout.h"

namespace nautilus::emit {

struct PointsGrid {
  PointsGrid(const ir::Program& program, const matile::Kernel& kernel, expr::ExprPool& pool);

  bool has_several() const { return points_per_thread > 1 || across; }
  bool has_tile() const { return across || spread > 0; }
  // Whether the points that exist along the last axis are asked for each of them.
  bool may_end() const { return is_line || spread > 0; }
  // Between neighbouring points of a thread.
  int64_t distance() const { return is_line || spread == 0 ? 1 : spread; }
  // What threads are for, in words.
  std::string described() const;

  int64_t warp = 1;               // lanes of one, by the target
  int64_t threads = 1;            // of a CTA
  int64_t lanes = 1;              // of each point
  int64_t points_per_thread = 1;  // points of a thread, along the last axis
  bool is_line = false;           // whose number `exist` says: whole vectors where they can be
  expr::Expr last;                // that axis
  expr::Expr across;              // another one along which a thread has points; null if none
  int64_t points_across = 1;
  int64_t lines_across = 1;  // threads along the last axis, where points lie across another
  bool is_patch = false;     // points along `across` for each of those along `last`
  int64_t spread = 0;        // threads along the last axis, if points lie so far apart; else 0
  int64_t held = 0;          // turns of loops whose elements stay in registers, at most
  int64_t unroll = 1;        // turns of a loop written one after the other
  int64_t windows = 0;       // most turns of a window that is written out
  bool is_private = false;   // each CTA has a copy of the result
};

}  // namespace nautilus::emit
