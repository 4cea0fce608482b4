// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/verify_point_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "matile/point_layout.h"
#include "matile/windows.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;

// The number of lanes of a point divides a warp.
bool are_lanes(int64_t n) { return n == 2 || n == 4 || n == 8 || n == 16 || n == 32; }

bool is_few(ir::OptionalInt n) { return n == 1 || n == 2 || n == 4 || n == 8; }

bool is_straight(const ir::Block& body) {
  return std::all_of(body.begin(), body.end(), [](const Op& op) {
    return op.is<Let>() || op.is<Value>() || op.is<Assign>() || op.is<Write>();
  });
}

class PointLayoutVerifier {
 public:
  PointLayoutVerifier(const Kernel& kernel, const target::Target& target, ir::Verifier& v)
      : points_(points_of(kernel)), layout_(point_layout(kernel)), target_(target), v_(v) {}

  void run(const LayoutLines& lines) {
    std::set<const ir::OpInfo*> seen;
    for (const Op& op : lines.body) {
      v_.set_op(op);
      if (!seen.insert(&op.info()).second)
        v_.fail(fmt::format("the layout has another line `{}`", op.info().mnemonic()));
      if (!op.is<EachPoints>() && decision::by(op) != decision::By::Auto)
        v_.fail("lines of a layout do not say who chose them");
      line(op);
    }
  }

 private:
  void line(const Op& op) {
    if (op.is<decision::Lanes>()) check_lanes();
    if (op.is<EachPoints>()) check_each();
    if (op.is<decision::Across>()) check_across(op.as<decision::Across>());
    if (op.is<decision::Spread>()) check_spread(op.as<decision::Spread>());
    if (op.is<decision::Patch>()) check_patch(op.as<decision::Patch>());
    if (op.is<decision::Held>()) check_held();
    if (op.is<decision::Private>()) check_private(op.as<decision::Private>());
    if (op.is<decision::Threads>()) check_threads();
    if (op.is<decision::Resident>()) check_resident();
    if (op.is<decision::Unroll>() &&
        (*layout_.unroll < 2 || *layout_.unroll > target_.points.most_unrolled))
      v_.fail(fmt::format("2 to {} turns of a loop are written one after the other, not {}",
                          target_.points.most_unrolled, *layout_.unroll));
    if (op.is<decision::Windows>() && *layout_.windows < 1)
      v_.fail(
          fmt::format("windows of 1 turn or more are written out, not of {}", *layout_.windows));
  }

  void check_lanes() {
    const int64_t lanes = *layout_.lanes;
    if (!are_lanes(lanes) && !are_of_cta(layout_, target_))
      v_.fail(fmt::format(
          "a point has one thread, or 2, 4, 8, 16 or 32, or all threads of its CTA, not {}",
          lanes));
  }
  void check_each() {
    const int64_t n = layout_.neighbours();
    if (n != 2 && n != 4 && n != 8)
      v_.fail(fmt::format("a thread has 2, 4 or 8 neighbouring points, not {}", n));
    if (layout_.lanes)
      v_.fail("a thread with several points (`each`) does not share them with other `lanes`");
  }
  // Tiles of two axes: lines along the last one, and another axis.
  void check_across(const decision::Across& across) {
    const auto is_it = [&](const ir::Axis& a) { return a.name == across.axis; };
    const bool is_other =
        points_.axes.size() > 1 && std::any_of(points_.axes.begin(), points_.axes.end() - 1, is_it);
    const int64_t n = across.points.value_or(0);
    if (!is_other || !layout_.is_ragged() || (n != 2 && n != 4 && n != 8))
      v_.fail(
          "a thread with `each n ragged` has 2, 4 or 8 points `across` another axis than the last");
    const int64_t lines = across.lines.value_or(0);
    if (lines < 1 || threads() % lines != 0)
      v_.fail(fmt::format("`lines` along the last axis are a part of the CTA's {} threads, not {}",
                          threads(), lines));
    if (!is_straight(points_.body)) v_.fail("points across an axis neither loop nor branch");
  }
  // Tiles of the last two axes; the points of a thread are a row of threads apart.
  void check_spread(const decision::Spread& spread) {
    const int64_t along = spread.threads.value_or(0);
    if (along < 1 || threads() % along != 0 || !is_few(spread.apart) || !is_few(spread.down))
      v_.fail(
          "`spread` is a part of the CTA's threads, with 1, 2, 4 or 8 points `apart` and `down`");
    if (points_.axes.size() == 1 && (along != threads() || spread.down != 1))
      v_.fail("points of one axis are spread over all threads");
    if (layout_.lanes || layout_.across || (layout_.each && !layout_.is_ragged()))
      v_.fail("points that are `spread` have no `lanes` and no `across`, and `each` is `ragged`");
    if (layout_.is_ragged() && (spread.apart != 1 || !is_straight(points_.body)))
      v_.fail("`each n ragged` with `spread` is 1 `apart`, and its points neither loop nor branch");
  }
  // Points along two axes.
  void check_patch(const decision::Patch& patch) {
    const auto has = [&](ir::Name axis) {
      return std::any_of(points_.axes.begin(), points_.axes.end(),
                         [&](const ir::Axis& a) { return a.name == axis; });
    };
    const auto is_side = [&](ir::OptionalInt n) {
      return n && *n >= 1 && *n <= target_.points.patch_side && (*n & (*n - 1)) == 0;
    };
    if (patch.rows == patch.columns || !has(patch.rows) || !has(patch.columns) ||
        !is_side(patch.high) || !is_side(patch.wide) ||
        *patch.high * *patch.wide > target_.points.patch_points)
      v_.fail(
          fmt::format("a `patch` has a power of two of points up to {} along each of two axes, "
                      "at most {}",
                      target_.points.patch_side, target_.points.patch_points));
    if (layout_.lanes || layout_.each || layout_.across || layout_.spread)
      v_.fail("a thread with a `patch` has no `lanes`, `each`, `across` or `spread`");
  }
  void check_held() {
    if (layout_.patch || layout_.lanes || layout_.across || layout_.spread || *layout_.held < 1 ||
        *layout_.held > target_.points.held_registers)
      return v_.fail(fmt::format("a point of one lane has 1 to {} turns of its loops `held`",
                                 target_.points.held_registers));
    const bool has_loop = std::ranges::any_of(
        points_.body, [](const Op& op) { return op.is<Loop>() && is_held_loop(op.as<Loop>()); });
    if (!has_loop) v_.fail("`held` is for loops from 0 whose number of turns is not known");
  }
  // A copy of a tensor in shared memory, which all points scatter to and nothing else uses.
  void check_private(const decision::Private& line) {
    if (line.ctas) v_.fail("the launch says how many CTAs have a `private` copy");
    if (!layout_.is_private) return;
    const ir::Name result = scattered_result(points_);
    const ir::TensorType* type = result ? v_.tensor(result) : nullptr;
    if (type) check_copy(*type);
    for (const Op& op : points_.body) {
      const auto* scatter = op.get<Scatter>();
      if (!op.is<Let>() && !(scatter && scatter->target == result))
        v_.fail("points with a `private` copy scatter to it, and do nothing else");
    }
    if (layout_.lanes || layout_.across || layout_.spread || layout_.patch)
      v_.fail("points with a `private` copy have one lane, and several in a thread by `each` only");
  }
  void check_copy(const ir::TensorType& type) {
    int64_t bytes = expr::bytes(type.dtype);
    bool ok = bytes >= 4;
    for (const Expr n : type.dims) {
      ok &= n.op() == expr::Op::IntConst && n.integer() <= target_.points.private_bytes;
      bytes = ok ? bytes * n.integer() : 0;
    }
    if (!ok || bytes > target_.points.private_bytes)
      v_.fail(
          fmt::format("a CTA has a `private` copy of words up to {} bytes, known when compiling",
                      target_.points.private_bytes));
  }
  void check_threads() {
    const target::Limits& limits = target_.limits;
    const int64_t n = *layout_.threads;
    if (n < 1 || n % limits.warp_threads != 0 || n > limits.cta_threads)
      v_.fail(fmt::format("a CTA has a multiple of {} threads up to {}, not {}",
                          limits.warp_threads, limits.cta_threads, n));
  }
  void check_resident() {
    const int64_t most = target_.limits.sm_threads / std::max<int64_t>(threads(), 1);
    if (*layout_.resident < 2 || *layout_.resident > most)
      v_.fail(fmt::format("2 to {} CTAs of {} threads are `resident`, not {}", most, threads(),
                          *layout_.resident));
  }

  int64_t threads() const { return layout_.threads.value_or(target_.points.threads); }

  const Points& points_;
  const PointLayout layout_;
  const target::Target& target_;
  ir::Verifier& v_;
};

}  // namespace

bool are_of_cta(const PointLayout& layout, const target::Target& target) {
  const int64_t lanes = layout.lanes.value_or(1);
  const int64_t warp = target.limits.warp_threads;
  return lanes > warp && lanes % warp == 0 &&
         lanes == layout.threads.value_or(target.points.threads);
}

void verify_point_layout(const Kernel& kernel, const target::Target& target, ir::Verifier& v) {
  PointLayoutVerifier verifier(kernel, target, v);
  for (const Op& op : kernel.body) {
    if (const auto* lines = op.get<LayoutLines>()) verifier.run(*lines);
  }
}

}  // namespace nautilus::matile
