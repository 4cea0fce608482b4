// SPDX-License-Identifier: Apache-2.0
// The costs of kernels along rows, and of rows that are put in order; a part of nest_cost.h.
#include <algorithm>
#include <cmath>

#include "choose/nest_traffic.h"
#include "choose/points/sort_shapes.h"
#include "choose/points/value_costs.h"
#include "choose/rows/short_rows.h"
#include "expr/walk.h"
#include "lower/places/run_plan.h"
#include "lower/rows/row_walks.h"

namespace nautilus::choose {

using expr::Expr;
using lower::MapNest;
using lower::RowStatement;
using EK = expr::Op;

namespace {

// Whether a row of known length is more than the registers of all its groups hold.
bool leaves_registers(const lower::RowGroup& group) {
  if (group.column.extent.op() != EK::IntConst) return false;
  const target::Rows& rows = group.target->rows;
  std::set<std::string> own;
  std::set<std::string> read;
  int64_t registers = 0;  // of all threads
  for (const RowStatement& s : group.statements) {
    expr::for_each(s.value, [&](Expr e) {
      if (e.op() != EK::Read || e.args().empty() || e.args().back() != group.place) return;
      if (own.contains(std::string(e.name().str())) || !read.emplace(e.name().str()).second) return;
      registers += group.column.extent.integer() / (expr::bytes(e.dtype()) == 2 ? 2 : 1);
    });
    own.emplace(s.target.str());
  }
  return registers > rows.groups * rows.threads * (rows.alone_registers - rows.spare_registers);
}

// Of short rows (choose/rows/short_rows.h).
struct Lanes {
  double count = 0;  // of a row; 0: it is not short
  double share = 1;  // of the memory's speed: some of them have no element, or load one at a time
};

// Of rows with so many columns, whether the length is a constant or a size that has them.
Lanes lanes_of(const lower::RowGroup& group, double length, const target::Target& target) {
  if (length < 1 || !may_be_short(group, length)) return {};
  const auto columns = static_cast<int64_t>(length);
  const int64_t by = vector_of_row(columns, target.rows);
  const int64_t lanes = lanes_of_row(columns, by, target);
  const double filled = length / static_cast<double>(columns_of_lanes(columns, lanes, by));
  return {static_cast<double>(lanes), by > 1 ? filled : filled * target.nests.single_share};
}

}  // namespace

double NestCosts::rows(const lower::RowGroup& group, const std::set<std::string>& kept,
                       bool may_share) const {
  double sum = 0;
  for (const Problem& p : problems_) sum += p.weight * rows_at(group, kept, may_share, p);
  return sum;
}

// Bytes of the cache for elements that are far apart along the columns.
double NestCosts::far_bytes(const lower::RowGroup& group, const Problem& at) const {
  const Expr column = pool_->index(group.column.name);
  const double elements = count(group.rows, at) * extent(group.column.extent, at);
  double bytes = 0;
  for (const RowStatement& s : group.statements) {
    expr::for_each(s.value, [&](Expr e) {
      if (e.op() == EK::Read && stride(e, column) == Stride::Far)
        bytes +=
            elements * static_cast<double>(expr::bytes(e.dtype())) * target_->nests.strided_lines;
    });
  }
  return bytes;
}

double NestCosts::rows_at(const lower::RowGroup& group, const std::set<std::string>& kept,
                          bool may_share, const Problem& at) const {
  const target::NestCosts& c = target_->nests;
  const auto sms = static_cast<double>(target_->board.sms);
  const double columns = extent(group.column.extent, at);
  const double rows = count(group.rows, at);
  const double walked = columns * count(group.outer, at);
  double reductions = 0;
  for (const RowStatement& s : group.statements)
    reductions += s.kind == RowStatement::Kind::Reduction ? 1 : 0;
  const bool is_held = group.outer.empty() &&
                       columns <= static_cast<double>(target_->rows.most_columns) &&
                       !leaves_registers(group);
  Traffic traffic;
  for (const RowStatement& s : group.statements) {
    if (kept.contains(std::string(s.target.str())))
      traffic.add(s.target.str(), bytes_of(s.target, at));
    traffic.operations += rows * walked * operations_along_row(s.value, c);
  }
  const lower::RowWalks walks = lower::row_walks(group, kept, *pool_);
  for (const auto& [tensor, reading] : walks.tensors) {
    const auto times =
        static_cast<double>(is_held ? std::min<int64_t>(reading.times, 1) : reading.times);
    if (!reading.is_computed) traffic.add(tensor, bytes_of(pool_->name(tensor), at) * times);
  }
  const Lanes lanes = may_share ? lanes_of(group, columns, *target_) : Lanes{};
  const double together =
      lanes.count > 0 ? static_cast<double>(target_->rows.threads) / lanes.count : 1;
  const double under_way = sms * c.resident_rows * together;
  const auto block = static_cast<double>(target_->rows.turn_elements * target_->rows.threads);
  const double turns = walked / block;
  const double latency =
      std::max(1.0, rows / under_way) *
      (c.row_cycles + reductions * c.reduction_cycles +
       (is_held ? 0 : static_cast<double>(walks.walks) * turns * c.row_turn_cycles));
  // A lane finds its row, and exchanges numbers for each reduction.
  if (lanes.count > 0)
    traffic.operations +=
        rows * lanes.count * (c.lane_operations + 2 * reductions * std::log2(lanes.count));
  double issue = traffic.operations * c.operation_slots /
                 (sms * static_cast<double>(target_->limits.group_threads));
  // Without reductions a CTA has a block of a row's columns, the only one where rows are short:
  // its other threads have nothing to do.
  const double blocks = rows * std::ceil(columns / block);
  const double starts = blocks / under_way * c.row_cycles;
  if (reductions == 0) issue *= blocks * block / (rows * columns);
  const double cache = reductions == 0 ? far_bytes(group, at) / (sms * c.cache_bytes) : 0;
  // Blocks that rows do not fill load one after the other: relu of 262144 x 250 f32 took 0.294 ms,
  // the 0.128 of its bytes and the 0.16 of its blocks; of 4096 columns 0.134, its bytes alone.
  if (reductions == 0 && columns < block)
    return target_->costs.next_kernel_cycles + memory_cycles(traffic) +
           std::max({issue, cache, starts});
  return target_->costs.next_kernel_cycles + std::max({memory_cycles(traffic) / lanes.share, issue,
                                                       cache, reductions > 0 ? latency : starts});
}

double NestCosts::sort(const lower::SortNests& order, std::span<const lower::SortShape> shapes,
                       const std::set<std::string>& kept) const {
  double sum = 0;
  for (const Problem& p : problems_) {
    const double elements = extent(order.order.axis.extent, p);
    const auto shape = std::find_if(shapes.begin(), shapes.end(), [&](const lower::SortShape& s) {
      return elements <= static_cast<double>(s.lanes * s.each);
    });
    sum += p.weight * sort_at(order, shape == shapes.end() ? shapes.back() : *shape, kept, p);
  }
  return sum;
}

double NestCosts::sort_at(const lower::SortNests& order, const lower::SortShape& shape,
                          const std::set<std::string>& kept, const Problem& at) const {
  const double rows = count(order.rows, at);
  const double columns = extent(order.order.axis.extent, at);
  Traffic traffic;
  expr::for_each(order.order.element, [&](Expr e) {
    const auto bytes = static_cast<double>(expr::bytes(e.dtype()));
    if (e.op() == EK::Read)
      traffic.add(e.name().str(), std::min(bytes_of(e.name(), at), rows * columns * bytes));
  });
  double places = 1;
  const auto write = [&](ir::Name result, Expr of) {
    if (!kept.contains(std::string(result.str()))) return;
    traffic.add(result.str(), bytes_of(result, at));
    places = std::max(places, extent(of, at));
  };
  write(order.counts, order.order.axis.extent);
  for (const lower::PlaceChoice& c : order.choices)
    write(c.target, c.places ? c.places : order.order.axis.extent);
  const int64_t run = shape.lanes * shape.each;
  const double runs = std::ceil(columns / static_cast<double>(run));
  const int64_t in_run = lower::kept_of_run(order, kept, run, *pool_);
  const double one =
      target_->costs.next_kernel_cycles +
      std::max(memory_cycles(traffic), sort_cycles(rows * runs, places, shape, *target_));
  if (runs <= 1) return one;
  // What passes from one kernel to the other: an element and its index.
  Traffic passed;
  const auto bytes =
      static_cast<double>(expr::bytes(order.order.element.dtype()) + expr::bytes(expr::DType::I32));
  passed.add(order.counts.str(), rows * runs * static_cast<double>(in_run) * bytes);
  return one + target_->costs.next_kernel_cycles + memory_cycles(passed) +
         std::max(memory_cycles(passed), merge_cycles(rows, runs, run, in_run, *target_));
}

}  // namespace nautilus::choose
