// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/verify_point_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;

class PointLayoutVerifier {
 public:
  PointLayoutVerifier(const target::Target& target, ir::Verifier& v) : target_(target), v_(v) {}

  void run(const Points& points) {
    if (points.across || points.points_across) check_across(points);
    if (points.spread || points.points_apart || points.points_down) check_spread(points);
    if (points.patch || points.patch_high || points.patch_over || points.patch_wide)
      check_patch(points);
    if (points.own) check_own(points);
  }

 private:
  // Tiles of two axes: lines along the last one, and another axis.
  void check_across(const Points& points) {
    const auto is_it = [&](const ir::Axis& a) { return a.name == points.across; };
    const bool is_other =
        points.axes.size() > 1 && std::any_of(points.axes.begin(), points.axes.end() - 1, is_it);
    const int64_t n = points.points_across.value_or(0);
    if (!is_other || !points.points_of_line || (n != 2 && n != 4 && n != 8))
      v_.fail("a kernel of lines has 2, 4 or 8 points `across` another axis than the last");
    const int64_t lines = points.lines_across.value_or(0);
    if (lines < 1 || own_threads(points) % lines != 0)
      v_.fail(fmt::format("`lines` along the last axis are a part of the CTA's {} threads, not {}",
                          own_threads(points), lines));
    for (const Op& op : points.body) {
      if (!op.is<Let>() && !op.is<Value>() && !op.is<Assign>() && !op.is<Write>())
        v_.fail("points across an axis neither loop nor branch");
    }
  }
  // Tiles of the last two axes; the points of a thread are a row of threads apart.
  void check_spread(const Points& points) {
    const int64_t threads = points.threads.value_or(target_.points.threads);
    const int64_t beside = points.spread.value_or(0);
    const auto is_few = [](ir::OptionalInt n) { return n == 1 || n == 2 || n == 4 || n == 8; };
    if (beside < 1 || threads % beside != 0 || !is_few(points.points_apart) ||
        !is_few(points.points_down))
      v_.fail(
          "`spread` is a part of the CTA's threads, with 1, 2, 4 or 8 points `apart` and `down`");
    if (points.axes.size() == 1 && (beside != threads || points.points_down != 1))
      v_.fail("points of one axis are spread over all threads");
    if (points.lanes_per_point || points.points_per_thread || points.across)
      v_.fail("points that are spread have one lane, and lie beside each other in lines only");
    if (points.points_of_line &&
        (points.points_apart != 1 ||
         std::any_of(points.body.begin(), points.body.end(), [](const Op& op) {
           return !op.is<Let>() && !op.is<Value>() && !op.is<Assign>() && !op.is<Write>();
         })))
      v_.fail("lines that are spread have no other points `apart`, and neither loop nor branch");
  }
  // Points along two axes.
  void check_patch(const Points& points) {
    const auto has = [&](ir::Name axis) {
      return std::any_of(points.axes.begin(), points.axes.end(),
                         [&](const ir::Axis& a) { return a.name == axis; });
    };
    const auto is_few = [&](ir::OptionalInt n) {
      return n && *n >= 1 && *n <= target_.points.patch_side && (*n & (*n - 1)) == 0;
    };
    const auto points_of = [](ir::OptionalInt n) { return n.value_or(0); };
    if (!points.patch || !points.patch_over || points.patch == points.patch_over ||
        !has(points.patch) || !has(points.patch_over) || !is_few(points.patch_high) ||
        !is_few(points.patch_wide) ||
        points_of(points.patch_high) * points_of(points.patch_wide) > target_.points.patch_points)
      v_.fail(
          fmt::format("a `patch` has a power of two of points up to {} along each of two axes, "
                      "at most {}",
                      target_.points.patch_side, target_.points.patch_points));
    if (points.lanes_per_point || points.points_per_thread || points.points_of_line ||
        points.across || points.spread)
      v_.fail("points of a patch have one lane, and no other points beside them");
  }
  // A copy of a tensor in shared memory, which all points scatter to and nothing else uses.
  void check_own(const Points& points) {
    const ir::TensorType* type = v_.tensor(points.own);
    if (!type) return v_.fail(fmt::format("there is no tensor `{}`", points.own.str()));
    int64_t bytes = expr::bytes(type->dtype);
    bool ok = bytes >= 4;
    for (const Expr n : type->dims) {
      ok &= n.op() == expr::Op::IntConst && n.integer() <= target_.points.private_bytes;
      bytes = ok ? bytes * n.integer() : 0;
    }
    if (!ok || bytes > target_.points.private_bytes)
      v_.fail(fmt::format("a CTA has an `own` copy of words up to {} bytes, known when compiling",
                          target_.points.private_bytes));
    for (const Op& op : points.body) {
      const auto* scatter = op.get<Scatter>();
      if (!op.is<Let>() && !(scatter && scatter->target == points.own))
        v_.fail("points with an `own` copy scatter to it, and do nothing else");
    }
    if (points.lanes_per_point || points.across || points.spread || points.patch)
      v_.fail("points that scatter have one lane, and lie in lines only");
  }

  int64_t own_threads(const Points& points) const {
    return points.threads.value_or(target_.points.threads);
  }

  const target::Target& target_;
  ir::Verifier& v_;
};

}  // namespace

void verify_point_layout(const Points& points, const target::Target& target, ir::Verifier& v) {
  PointLayoutVerifier(target, v).run(points);
}

}  // namespace nautilus::matile
