// SPDX-License-Identifier: Apache-2.0
// Kernels whose lanes put rows in order, as kernels for the first nests; a part of cover.h.
#include <cmath>

#include "choose/cover.h"
#include "choose/points/sort_shapes.h"
#include "lower/places/run_plan.h"
#include "lower/places/sort_kernel.h"

namespace nautilus::choose {

// A count of what comes before each element of a row, with the reductions that choose by it. Where
// rows may be longer than lanes hold, the last kernel puts runs of them in order.
std::optional<Cover> Coverer::as_sort(const Nests& nests) {
  const auto order = lower::sort_nests(nests, program_.names, target_, context_.pool);
  if (!order) return std::nullopt;
  const std::set<std::string> kept = kept_behind(nests, order->count);
  if (!lower::refuse_sort(*order, kept).empty()) return std::nullopt;
  const expr::Expr extent = order->order.axis.extent;
  const auto known =
      extent.op() == expr::Op::IntConst ? std::optional(extent.integer()) : std::nullopt;
  const auto shapes = sort_shapes(known, costs_.hinted_extent(extent), target_);
  Cover out;
  out.kernels.push_back(kernel(decision::Form::Sort, nests, order->count));
  ChosenKernel& made = out.kernels[0];
  for (const lower::SortShape& shape : shapes) {
    ir::Block& lines = &shape == shapes.data() ? made.lines : made.others.emplace_back();
    lines.push_back(ir::make(decision::Lanes{shape.lanes, {}}));
    lines.push_back(ir::make(decision::Each{shape.each, {}}));
    lines.push_back(ir::make(decision::Threads{shape.threads, {}}));
    const int64_t run = shape.lanes * shape.each;
    if (&shape != &shapes.back() || known.value_or(run + 1) <= run) continue;
    const int64_t in_run = lower::kept_of_run(*order, kept, run, context_.pool);
    const double runs = std::ceil(costs_.hinted_extent(extent) / static_cast<double>(run));
    lines.push_back(ir::make(merge_shape(run, in_run, runs, target_)));
  }
  add([order = *order, shapes, kept](const NestCosts& c) { return c.sort(order, shapes, kept); },
      out);
  return out;
}

}  // namespace nautilus::choose
