// SPDX-License-Identifier: Apache-2.0
#include "lower/points/parts_by_sizes.h"

#include <fmt/format.h>

#include <limits>

#include "ir/print.h"
#include "lower/points/point_counts.h"
#include "lower/points/points_loops.h"
#include "matile/point_layout.h"

namespace nautilus::lower {
namespace {

using decision::Serves;
using expr::Expr;
using EK = expr::Op;

int64_t least(const Serves& s) { return s.least.value_or(1); }
int64_t most(const Serves& s) { return s.most.value_or(std::numeric_limits<int64_t>::max()); }

bool have_points_in_common(const Serves& a, const Serves& b) {
  return least(a) <= most(b) && least(b) <= most(a);
}

bool covers(const Serves& all, const Serves& some) {
  return least(all) <= least(some) && most(some) <= most(all) &&
         all.parts.value_or(1) <= some.parts.value_or(1);
}

// Threads with several points have whole lines of them; null: they always do.
Expr is_whole(const LoweredKernel& parts, expr::ExprPool& pool) {
  const auto& kernel = parts.kernel.as<matile::Kernel>();
  const matile::PointLayout layout = matile::point_layout(kernel);
  const Expr last = matile::points_of(kernel).axes.back().extent;
  if (!layout.each || layout.is_ragged() || last.op() == EK::IntConst) return {};
  const Expr rest = pool.binary(EK::Mod, last, pool.integer(layout.neighbours()));
  return pool.binary(EK::Eq, rest, pool.integer(0));
}

void set_grid(LoweredKernel& parts, Expr grid) {
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = grid;
  parts.launch = ir::make(std::move(launch));
}

}  // namespace

PartsBySizes::PartsBySizes(const LoweredKernel& first, expr::ExprPool& pool)
    : pool_(pool),
      points_(count_of(matile::points_of(first.kernel.as<matile::Kernel>()).axes, pool)),
      parts_(parts_of(first)) {}

std::optional<int64_t> PartsBySizes::points() const {
  if (points_.op() != EK::IntConst) return std::nullopt;
  return points_.integer();
}

std::string PartsBySizes::refuse(const Serves& line) const {
  for (const ir::OptionalInt n : {line.least, line.most, line.parts}) {
    if (n && *n < 1) return "points and parts are counted from 1";
  }
  if (least(line) > most(line))
    return fmt::format("no size has from {} to {} points", least(line), most(line));
  if (points() && (line.least || line.most))
    return fmt::format("all sizes have {} points: a number of them chooses nothing", *points());
  if (line.parts && !parts_) return "its loops are not all over parts";
  for (const Served& before : added_) {
    if (before.is_all && covers(before.line, line))
      return fmt::format("`{}` of an alternative before it has all of these sizes",
                         ir::print(ir::make(before.line)));
  }
  return "";
}

void PartsBySizes::add(LoweredKernel& first, LoweredKernel& other, const Serves& line) {
  Expr serves;
  const auto also = [&](Expr condition) {
    serves = serves ? pool_.binary(EK::And, serves, condition) : condition;
  };
  if (line.parts) also(pool_.binary(EK::Le, pool_.integer(*line.parts), parts_));
  if (line.least) also(pool_.binary(EK::Le, pool_.integer(*line.least), points_));
  if (line.most) also(pool_.binary(EK::Le, points_, pool_.integer(*line.most)));
  const Expr whole = is_whole(other, pool_);
  if (whole) also(whole);
  if (!serves) serves = pool_.boolean(true);
  const Expr none = pool_.integer(0);
  Expr grid = pool_.select(serves, other.launch.as<matile::Launch>().grid, none);
  for (const Served& before : added_) {
    if (have_points_in_common(before.line, line)) grid = pool_.select(before.condition, none, grid);
  }
  set_grid(other, grid);
  set_grid(first, pool_.select(serves, none, first.launch.as<matile::Launch>().grid));
  added_.push_back({line, !whole, serves});
}

}  // namespace nautilus::lower
