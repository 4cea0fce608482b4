// SPDX-License-Identifier: Apache-2.0
#include "lower/places/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lower/places/place_writes.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

class Planner {
 public:
  Planner(const RunRequest& request, expr::ExprPool& pool) : of_(request), pool_(pool) {}

  RunPlan run(Expr is_longer) {
    const Expr count = of_.nests.order.axis.extent;
    const int64_t kept = kept_of_run(of_.nests, of_.points.kept, of_.run, pool_);
    Expr all = count;
    for (const PlaceChoice& c : of_.nests.choices) {
      const Expr places = most_places(c);
      if (kept < of_.run || places == count) continue;
      all = binary(EK::Max, all, places);
      out_.has_empty = true;
    }
    Expr runs = quotient(all, number(of_.run));
    if (is_longer) runs = pool_.select(is_longer, runs, number(0));
    out_.runs = planned("runs", runs);
    Expr length = number(kept);
    Expr half = number(0);
    for (int64_t step = 0; step < of_.pairs; ++step) {
      length = where_merged(step, number(kept << (step + 1)), length);
      half = where_merged(step, number((step + 1) % 2), half);
    }
    out_.last.length = planned("length", length);
    out_.last.half = planned("half", half);
    out_.last.count = of_.pairs == 0
                          ? out_.runs
                          : quotient(binary(EK::Mul, out_.runs, number(kept)), out_.last.length);
    return std::move(out_);
  }

 private:
  Expr number(int64_t n) { return pool_.integer(n); }
  Expr binary(EK op, Expr a, Expr b) { return pool_.binary(op, a, b); }

  // Rounded up.
  Expr quotient(Expr a, Expr b) {
    if (a.op() == EK::IntConst && b.op() == EK::IntConst)
      return number((a.integer() + b.integer() - 1) / b.integer());
    const Expr less =
        b.op() == EK::IntConst ? number(b.integer() - 1) : binary(EK::Sub, b, number(1));
    return binary(EK::FloorDiv, binary(EK::Add, a, less), b);
  }

  // A place that is data is at most the one behind the row.
  Expr most_places(const PlaceChoice& c) {
    if (c.places) return c.places;
    const Expr last = c.place.op() == EK::IntConst ? c.place : of_.nests.order.axis.extent;
    return binary(EK::Add, last, number(1));
  }

  // A scalar of the plan, unless it is a number.
  Expr planned(std::string_view what, Expr value) {
    if (value.op() == EK::IntConst) return value;
    const ir::Name name = of_.points.names.make(fmt::format("{}_{}", of_.stem, what));
    out_.scalars.push_back(ir::make(matile::Let{name, value}));
    return pool_.index(name);
  }

  Expr where_merged(int64_t step, Expr a, Expr b) {
    if (out_.runs.op() == EK::IntConst) return out_.runs.integer() > int64_t{2} << step ? a : b;
    return pool_.select(are_pairs_merged(out_.runs, step, pool_), a, b);
  }

  const RunRequest& of_;
  expr::ExprPool& pool_;
  RunPlan out_;
};

}  // namespace

int64_t kept_of_run(const SortNests& nests, const std::set<std::string>& kept, int64_t run,
                    expr::ExprPool& pool) {
  const Expr places = places_asked(nests, kept, pool);
  if (places.op() != EK::IntConst || places.integer() >= run) return run;
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(places.integer(), 1))));
}

Expr are_pairs_merged(Expr runs, int64_t step, expr::ExprPool& pool) {
  return pool.binary(EK::Gt, runs, pool.integer(int64_t{2} << step));
}

RunPlan run_plan(const RunRequest& request, Expr is_longer, expr::ExprPool& pool) {
  return Planner(request, pool).run(is_longer);
}

}  // namespace nautilus::lower
