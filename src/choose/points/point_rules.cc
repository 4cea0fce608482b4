// SPDX-License-Identifier: Apache-2.0
#include "choose/points/point_rules.h"

#include <algorithm>

#include "choose/points/scatter_axes.h"
#include "choose/points/sort_shapes.h"
#include "matile/point_layout.h"
#include "matile/windows.h"

namespace nautilus::choose {

// Those that walk along a row together are all of a CTA, or warps of it.
int64_t PointRules::threads(int64_t lanes) {
  return lanes > target_.limits.warp_threads ? lanes : target_.points.threads;
}

int64_t PointRules::scan_lanes() { return target_.limits.warp_threads; }

int64_t PointRules::scan_each(int64_t vector) { return vector; }

int64_t PointRules::lines_across() { return target_.points.lines_across; }

ir::Names PointRules::axes_of_terms(const lower::MapNest& terms) {
  ir::Names out;
  for (const ir::Axis& a : scatter_axes(terms, target_.nests, pool_)) out.push_back(a.name);
  return out;
}

// As many as have room together: all threads of the machine have terms.
int64_t PointRules::private_ctas(int64_t threads) {
  return std::min<int64_t>(target_.limits.sm_threads / threads, target_.limits.sm_ctas);
}

// A vector of memory for a thread, and long CTAs: with fewer bytes it is CTAs that take the time,
// as the machine begins only so many of them.
decision::First PointRules::first(int64_t element_bytes) {
  const target::Points& points = target_.points;
  return {std::min(points.first_bytes / element_bytes, points.line), points.first_threads, {}};
}

// As many turns as make the target's loads under way, if those are enough; of loops over parts as
// many as the target takes.
int64_t PointRules::turns(const lower::TurnFacts& facts) {
  const target::Points& points = target_.points;
  if (facts.is_over_parts) return points.parts_turns;
  const int64_t turns = points.loads / std::max<int64_t>(facts.loads, 1);
  return turns >= points.worth_turns ? turns : 1;
}

lower::SortShape PointRules::sort(expr::Expr count) {
  return sort_shape(count.op() == expr::Op::IntConst ? count.integer() : target_.points.sort_row,
                    target_);
}

// Where nothing says how long rows are, few runs are assumed.
decision::Merge PointRules::merge(int64_t kept) { return merge_shape(kept, kept, 1, target_); }

// The longest ones with turns, for all points of a thread, that the target has room for.
int64_t PointRules::windows(const matile::Kernel& kernel) {
  const matile::PointLayout layout = matile::point_layout(kernel);
  const bool is_patch = layout.patch.has_value();
  const int64_t points = layout.points_of_thread();
  const int64_t most = (is_patch ? target_.points.patch_turns : target_.points.unrolled) / points;
  int64_t turns = 0;
  for (const int64_t n : matile::sizes_of_windows(kernel)) {
    if (n <= most) turns = std::max(turns, n);
  }
  return turns;
}

// Of windows, patches and scans along memory, which wait for loads with registers full of elements;
// registers of others are as the compiler of the text takes them.
int64_t PointRules::resident(const matile::Kernel& kernel, int64_t threads) {
  const target::Points& choice = target_.points;
  const matile::Points& points = matile::points_of(kernel);
  const matile::PointLayout layout = matile::point_layout(kernel);
  const bool is_window = layout.spread && !layout.is_ragged();
  const bool is_walk = std::any_of(points.body.begin(), points.body.end(),
                                   [](const ir::Op& op) { return op.is<matile::LaneLoop>(); });
  // More sums of a thread leave registers for fewer of them.
  const int64_t sums = layout.patch ? layout.points_of_thread() : 1;
  const int64_t more = std::max<int64_t>(sums / choice.patch_usual, 1);
  const int64_t all = layout.patch ? choice.patch_threads / more
                      : is_window  ? choice.window_threads
                      : is_walk    ? choice.walk_resident
                                   : 0;
  return std::max<int64_t>(all / threads, 1);
}

// A thread for each point, lanes that share one where points are few, lines where they are many.
std::vector<ir::Block> PointRules::part_alternatives() {
  const target::Points& points = target_.points;
  return {{},
          {ir::make(decision::Lanes{points.part_lanes, {}})},
          {ir::make(decision::Each{points.each, {}})}};
}

// Lanes where parts are many and points few, lines where points are many. A number of points that
// never changes is compared here: a line about it would choose nothing.
std::optional<decision::Serves> PointRules::serves(const lower::ServedFacts& facts) {
  const target::Points& points = target_.points;
  decision::Serves out;
  if (facts.has_lanes) {
    out.most = points.few;
    out.parts = points.many_parts;
  } else {
    out.least = points.many;
  }
  if (!facts.points) return out;
  if (*facts.points < out.least.value_or(0) || *facts.points > out.most.value_or(*facts.points))
    return std::nullopt;
  out.least.reset();
  out.most.reset();
  return out;
}

// All elements at once, up to what the target has loads for.
decision::LastTile PointRules::last_tile(const lower::LastTileFacts& facts) {
  const target::Parts& usual = target_.parts;
  const int64_t threads = facts.threads;
  const int64_t all = (facts.elements + threads - 1) / threads * threads;
  const int64_t points = std::clamp<int64_t>(all, threads, usual.points_of_last);
  return lower::reached({points, usual.parts_of_last, usual.loads_of_last, {}}, facts);
}

}  // namespace nautilus::choose
