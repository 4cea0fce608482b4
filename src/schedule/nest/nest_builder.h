// SPDX-License-Identifier: Apache-2.0
// The nest of one kernel (build.h), phase by phase:
//
//   nest_outline.h      which members are computed, and when: before the loop, in it, rolled over
//                       its steps, after it, or by their readers; the steps of the loop
//   stream_guards.h     guards against terms beyond the axis of a reduction
//   nest_terms.h        tiles, and terms of reductions
//   rolling_loop.h      the loop; moving_sums.h: sums relative to moving references
//   nest_results.h      results in memory, whole or in parts
//
// nest_frame.h has the state that they share, nest_translation.h translates expressions into the
// nest.
#pragma once

#include "schedule/nest/build.h"
#include "schedule/nest/nest_results.h"
#include "schedule/nest/rolling_loop.h"

namespace nautilus::schedule {

class NestBuilder {
 public:
  NestBuilder(const FusionScope& scope, const TileConfig& sizes, const std::set<int>& stored,
              Names& names, const SplitSizes* split)
      : f_(scope, sizes, stored, names, split),
        translation_(f_),
        guards_(f_),
        terms_(f_, translation_, guards_),
        moving_(f_, translation_, guards_),
        loop_(f_, translation_, terms_, moving_),
        results_(f_, translation_) {}

  // `once`: an axis around the kernel, or none.
  BuiltKernel run(const ir::Axes& once);
  const Tiling& tiling() const { return f_.tiling; }

 private:
  void guard_empty_axes();
  void choose_steps();

  // The work of a tile of the grid.
  ir::Block body();
  // The tiles of the grid, and the warp groups of each.
  scalar::For grid(const ir::Axes& once, ir::Block body);

  // Whether a stored result lacks this axis and must be written even if the axis is empty.
  bool runs_when_empty(Expr axis) const;
  // The number of tiles along such an axis.
  Expr at_least_one(Expr axis, Expr count);

  NestFrame f_;
  NestTranslation translation_;
  StreamGuards guards_;
  NestTerms terms_;
  MovingSums moving_;
  RollingLoop loop_;
  NestResults results_;
  ir::Block decided_;
  std::optional<Rejection> refused_;
};

}  // namespace nautilus::schedule
