// SPDX-License-Identifier: Apache-2.0
#include "lower/places/first_kernel.h"

#include <fmt/format.h>

#include <bit>

#include "decision/choice.h"

namespace nautilus::lower {
namespace {

using decision::First;

// Of one result there is one element.
First by_rule(const PointsContext& points) {
  const MapNest& nest = points.nests[0];
  const std::string written = *written_by(nest).begin();
  First line = points.rules->first(expr::bytes(points.buffers.at(written).dtype));
  if (nest.axes.empty()) line.each = 1;
  return line;
}

std::string refuse(const First& line, const PointsContext& points) {
  const int64_t each = line.each.value_or(0);
  const int64_t threads = line.threads.value_or(0);
  const int64_t most_each = points.nests[0].axes.empty() ? 1 : points.target.points.line;
  const target::Limits& limits = points.target.limits;
  if (each < 1 || each > most_each || !std::has_single_bit(static_cast<uint64_t>(each)))
    return fmt::format("a thread has a power of two of elements up to {}", most_each);
  if (threads < 1 || threads % limits.warp_threads != 0 || threads > limits.cta_threads)
    return fmt::format("a CTA has a multiple of {} threads up to {}", limits.warp_threads,
                       limits.cta_threads);
  return "";
}

}  // namespace

std::optional<LoweredKernel> first_kernel(const PointsContext& points, ir::Block& alternative,
                                          ir::Block& members, ir::PassContext& context) {
  ir::PassContext noting = context.with(context.sink, members);
  decision::Choice<First> choice(noting);
  ir::Block body = decision::with_lines({}, alternative);
  choice.begin(body);
  alternative = decision::lines(body);
  if (!choice.asked() && !points.rules) {
    context.sink.report(
        diag::Code::DecisionRefused, {},
        "`kernel ... scatter`: it has no line `first`, which choose_point_lines writes");
    return std::nullopt;
  }
  const First line = choice.asked() ? *choice.asked() : by_rule(points);
  const std::string why = refuse(line, points);
  if (!why.empty()) choice.refuse(why);
  choice.took(line);
  if (!choice.end("")) return std::nullopt;
  const ir::Block lines = {ir::make(decision::Lanes{1, {}}),
                           ir::make(decision::Each{line.each, {}}),
                           ir::make(decision::Threads{line.threads, {}})};
  ir::Block unnamed;  // its line stands with those of the terms
  ir::PassContext own = context.with(context.sink, unnamed);
  return points_alternative(points, lines, {}, own);
}

}  // namespace nautilus::lower
