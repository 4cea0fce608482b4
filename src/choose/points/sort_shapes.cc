// SPDX-License-Identifier: Apache-2.0
#include "choose/points/sort_shapes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace nautilus::choose {
namespace {

int64_t doublings(int64_t n) {
  return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n))) - 1;
}

// Steps of sorting in which keys move so far.
struct SortSteps {
  double own = 0;     // between keys of a thread
  double lanes = 0;   // between lanes of a warp
  double shared = 0;  // through shared memory
};

// Runs of 2, 4, .. keys are put together in 1, 2, .. steps, over half a run and less; runs of more
// keys than are asked for leave the last ones, and are no longer than those.
SortSteps steps_of(const lower::SortShape& shape, double places, const target::Target& target) {
  const int64_t own = doublings(shape.each);
  const int64_t warp = doublings(target.limits.warp_threads);
  const double asked = std::clamp(places, 1.0, static_cast<double>(shape.lanes * shape.each));
  const int64_t kept =
      std::max<int64_t>(static_cast<int64_t>(std::ceil(std::log2(asked))) - own, 0);
  SortSteps out;
  out.own = static_cast<double>(own * (own + 1) / 2);
  for (int64_t m = 1; m <= doublings(shape.lanes); ++m) {
    const int64_t near = std::min(m - 1, kept);  // steps over less than half of the lanes
    out.own += static_cast<double>(own);
    out.lanes += static_cast<double>(std::min(near, warp) + (m <= warp ? 1 : 0));
    out.shared += static_cast<double>(std::max<int64_t>(near - warp, 0) + (m <= warp ? 0 : 1));
  }
  return out;
}

}  // namespace

lower::SortShape sort_shape(int64_t elements, const target::Target& target) {
  const auto all = static_cast<int64_t>(std::bit_ceil(
      static_cast<uint64_t>(std::clamp<int64_t>(elements, 2, target.points.sort_row))));
  // A warp's lanes have twice as many rather than those of two warps; a CTA's where it has no more.
  const target::Limits& limits = target.limits;
  int64_t each = std::min(target.points.sort_usual, all / 2);
  const bool is_of_two_warps = all == 2 * each * limits.warp_threads;
  while (is_of_two_warps ? all / each > limits.warp_threads : all / each > limits.cta_threads)
    each *= 2;
  const int64_t lanes = all / each;
  return {lanes, each, lanes > target.limits.warp_threads ? lanes : target.points.threads};
}

std::vector<lower::SortShape> sort_shapes(std::optional<int64_t> known, double usual,
                                          const target::Target& target) {
  const int64_t most = target.points.sort_row;
  if (known) return {sort_shape(*known, target)};
  std::vector<lower::SortShape> out;
  if (usual <= static_cast<double>(most) / 2)
    out.push_back(sort_shape(static_cast<int64_t>(usual), target));
  out.push_back(sort_shape(most, target));
  out.push_back(out.back());
  return out;
}

// A kernel that merges pairs takes as long as the last kernel takes with a few more runs.
decision::Merge merge_shape(int64_t run, int64_t kept, double runs, const target::Target& target) {
  decision::Merge out{std::min(kept, target.points.merge_each), target.points.threads, {}, {}};
  int64_t pairs = 0;
  while (kept == run && runs > static_cast<double>(target.points.merge_runs << pairs)) ++pairs;
  if (pairs > 0) out.pairs = pairs;
  return out;
}

double sort_cycles(double rows, double places, const lower::SortShape& shape,
                   const target::Target& target) {
  const target::NestCosts& c = target.nests;
  const auto sms = static_cast<double>(target.board.sms);
  const SortSteps steps = steps_of(shape, places, target);
  const double keys = static_cast<double>(shape.lanes * shape.each);
  const double slots = c.lane_operations + steps.own * c.sort_own + steps.lanes * c.sort_lanes +
                       steps.shared * c.sort_shared;
  // With few rows some multiprocessors have a CTA and others none.
  const double in_cta = static_cast<double>(shape.threads / shape.lanes);
  const double ctas = std::ceil(rows / in_cta);
  const double most = std::ceil(ctas / sms) * std::min(in_cta, rows);
  const double issue = most * keys * slots / static_cast<double>(target.limits.group_threads);
  const double threads = rows * static_cast<double>(shape.lanes);
  const double rounds =
      std::max(1.0, threads / (sms * static_cast<double>(target.limits.sm_threads)));
  const double latency = c.thread_cycles + (steps.lanes + 2 * steps.shared) * c.sort_step_cycles;
  return std::max(issue, rounds * latency);
}

// A thread looks for its first element in another run by halving, and for the others nearby.
double merge_cycles(double rows, double runs, int64_t run, int64_t kept,
                    const target::Target& target) {
  const target::NestCosts& c = target.nests;
  const auto sms = static_cast<double>(target.board.sms);
  const decision::Merge shape = merge_shape(run, kept, runs, target);
  const auto each = static_cast<double>(*shape.each);
  const auto pairs = static_cast<double>(shape.pairs.value_or(0));
  const double left = std::ceil(runs / std::exp2(pairs));
  const double steps = std::log2(static_cast<double>(kept)) + pairs + 1 + 3 * (each - 1);
  const double threads = rows * runs * static_cast<double>(kept) / each;
  const double searched = (pairs + std::max(left - 1, 0.0)) * steps;
  const double issue = threads * (c.lane_operations * (pairs + 1) + searched * c.search_step) /
                       (sms * static_cast<double>(target.limits.group_threads));
  const double rounds =
      std::max(1.0, threads / (sms * static_cast<double>(target.limits.sm_threads)));
  return pairs * target.costs.next_kernel_cycles +
         std::max(issue,
                  rounds * (c.thread_cycles * (pairs + 1) + searched * c.search_step_cycles));
}

}  // namespace nautilus::choose
