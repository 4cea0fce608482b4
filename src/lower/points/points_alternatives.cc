// SPDX-License-Identifier: Apache-2.0
#include "lower/points/points_alternatives.h"

#include "lower/points/own_results.h"
#include "lower/points/parts_by_sizes.h"
#include "lower/points/patch_points.h"
#include "lower/points/point_lines.h"
#include "lower/points/point_parts.h"
#include "lower/points/points_loops.h"
#include "lower/points/scan_lines.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using decision::Form;

constexpr std::string_view kNotShared =
    "its loops are not all sums, maxima or minima of independent values";
constexpr std::string_view kNotAcross =
    "it is no kernel of lines without loops that has this axis before its last";
constexpr std::string_view kNotSpread =
    "it has other points of a thread, branches, or loops of different lengths; a kernel with one "
    "axis has all threads along it";
constexpr std::string_view kNoPatch =
    "it has not two such axes, or other points of a thread, branches, or loops of different "
    "lengths";
constexpr std::string_view kNotWidened = "its points branch, or lanes share them";
constexpr std::string_view kNotWhole =
    "its points branch, lanes share them, or its last axis leaves a rest";
constexpr std::string_view kNotAnother =
    "another alternative has several lanes for a point, or several points in a thread";
constexpr std::string_view kServesNone = "no size has as many points as this alternative is for";

// The kernel as its lines say, for all sizes.
bool follow(PointLines& lines, const PointsContext& points, Form form, LoweredKernel& parts,
            ir::PassContext& context) {
  const int64_t threads = lines.threads();
  const MapNest* terms = form == Form::Scatter ? points.nests.data() : nullptr;
  if (form != Form::Parts && !lines.order_axes(parts, terms)) return false;
  if (lines.scan()) {
    const bool is_scan =
        walk_in_lines(parts, *lines.scan(), threads, points.buffers, points.names, context.pool);
    if (!is_scan) lines.refuse_no_scan();
    if (is_scan) lines.resident(parts);
    return is_scan;
  }
  if (lines.lanes() > 1 && !share_lanes(parts, lines.lanes(), threads, points.target.limits,
                                        points.names, context.pool)) {
    lines.refuse_lanes(kNotShared);
    return false;
  }
  if (lines.each() > 1 && !widen(parts, lines.each(), threads, context.pool)) {
    lines.refuse_each(kNotWidened);
    return false;
  }
  if (lines.across() && !widen_across(parts, *lines.across(), threads, context.pool)) {
    lines.refuse_across(kNotAcross);
    return false;
  }
  if (lines.spread() && !spread(parts, *lines.spread(), threads, context.pool)) {
    lines.refuse_spread(kNotSpread);
    return false;
  }
  if (lines.patch() && !patch(parts, *lines.patch(), threads, context.pool)) {
    lines.refuse_patch(kNoPatch);
    return false;
  }
  if (lines.held() && !hold(parts, lines.held()->turns.value_or(0))) {
    lines.refuse_held("no two loops of a point have the same number of turns");
    return false;
  }
  if (lines.is_private()) {
    const std::string why = own_results(parts, points.buffers, points.target, lines.private_ctas(),
                                        points.machine, context.pool);
    if (!why.empty()) lines.refuse_private(why);
    if (!why.empty()) return false;
  }
  lines.unroll(parts, form == Form::Parts, context.pool);
  lines.resident(parts);
  return lines.windows(parts);
}

std::optional<LoweredKernel> lower(const PointsContext& points, const PointLines& lines,
                                   ir::PassContext& context) {
  auto parts = lower_points(points.nests, points.kept, points.buffers, points.names, lines.choice(),
                            context);
  if (parts) set_threads(*parts, lines.threads(), points.target);
  return parts;
}

// The first of the kernels that put parts together, as if it were the only one.
std::optional<LoweredKernel> first_of_parts(const PointsContext& points, PointLines& lines,
                                            std::string_view name, const ir::Block& members,
                                            ir::PassContext& context) {
  if (!lines.read()) return std::nullopt;
  if (lines.spread()) lines.refuse_spread("kernels that put parts together have no tiles");
  if (lines.held()) lines.refuse_held("kernels that put parts together hold nothing");
  if (lines.patch()) lines.refuse_patch("kernels that put parts together have no patches");
  if (lines.spread() || lines.held() || lines.patch()) return std::nullopt;
  auto one = lower(points, lines, context);
  if (!one || !follow(lines, points, Form::Parts, *one, context) ||
      !lines.end(*one, name, Form::Parts, members, context))
    return std::nullopt;
  return one;
}

bool has_one_form(const PointLines& lines) { return (lines.lanes() > 1) != (lines.each() > 1); }

// Another of them, with lanes for a point or points in a thread; nothing if it has no such form.
std::optional<LoweredKernel> other_of_parts(const PointsContext& points, const PointLines& lines,
                                            const LoweredKernel& first, expr::ExprPool& pool) {
  if (!has_one_form(lines)) return std::nullopt;
  return lines.lanes() > 1 ? share_parts(first, lines.lanes(), lines.threads(), points.names, pool)
                           : widen_points(first, lines.each(), lines.threads(), points.names, pool);
}

void refuse_other_of_parts(PointLines& lines) {
  if (has_one_form(lines)) {
    lines.refuse_lanes(kNotShared);
    lines.refuse_each(kNotWhole);
    return;
  }
  lines.refuse_lanes(kNotAnother);
  lines.refuse_each(kNotAnother);
  lines.refuse_threads(kNotAnother);
}

}  // namespace

std::optional<LoweredKernel> points_alternative(const PointsContext& points,
                                                const ir::Block& alternative,
                                                const ir::Block& members,
                                                ir::PassContext& context) {
  PointLines lines(alternative, points.target, points.rules, context);
  if (!lines.read()) return std::nullopt;
  auto parts = lower(points, lines, context);
  const std::string name = named_after(points.nests, points.kept);
  if (!parts || !follow(lines, points, points.form, *parts, context) ||
      !lines.end(*parts, name, points.form, members, context))
    return std::nullopt;
  lines.leave(*parts);
  return parts;
}

std::optional<std::vector<LoweredKernel>> parts_alternatives(
    const PointsContext& points, std::span<const ir::Block> alternatives, bool are_optional,
    const ir::Block& members, ir::PassContext& context) {
  const std::string name = named_after(points.nests, points.kept);
  PointLines first(alternatives[0], points.target, points.rules, context);
  auto one = first_of_parts(points, first, name, members, context);
  if (!one) return std::nullopt;
  PartsBySizes sizes(*one, context.pool);
  std::vector<LoweredKernel> out = {*one};
  for (const ir::Block& alternative : alternatives.subspan(1)) {
    PointLines lines(alternative, points.target, points.rules, context);
    if (!lines.read()) return std::nullopt;
    auto other = other_of_parts(points, lines, *one, context.pool);
    const auto served = lines.serves({lines.lanes() > 1, sizes.points()});
    if ((!other || !served) && are_optional) continue;
    if (!other) {
      refuse_other_of_parts(lines);
      return std::nullopt;
    }
    const std::string why = served ? sizes.refuse(*served) : std::string(kServesNone);
    if (!why.empty()) {
      lines.refuse_served(why);
      return std::nullopt;
    }
    sizes.add(out[0], *other, *served);
    set_threads(*other, lines.threads(), points.target);
    lines.unroll(*other, true, context.pool);
    lines.resident(*other);
    if (!lines.windows(*other)) return std::nullopt;
    if (!lines.end(*other, name, Form::Parts, {}, context)) return std::nullopt;
    lines.leave(*other);
    out.push_back(*other);
  }
  first.leave(out[0]);
  return out;
}

}  // namespace nautilus::lower
