// SPDX-License-Identifier: Apache-2.0
// Kernels of points: what a thread has of them (one, a line, lines of two axes, points spread over
// rows, a patch), and whether lanes share one.
#include <algorithm>
#include <limits>

#include "choose/cover.h"
#include "choose/points/patch_points.h"
#include "choose/points/point_lines.h"
#include "choose/points/scan_vectors.h"
#include "choose/points/spread_points.h"
#include "lower/points/patch_points.h"
#include "lower/points/points_loops.h"
#include "lower/points/scan_elements.h"
#include "lower/points/scan_kernel.h"
#include "lower/points/unroll_loops.h"
#include "scalar/ops.h"

namespace nautilus::choose {

using decision::Form;
using expr::Expr;
using lower::MapNest;

namespace {

// Loops that leave lanes of a warp idle.
bool is_short(std::span<const MapNest> nests, int64_t warp) {
  bool found = false;
  for (const MapNest& nest : nests) {
    for (const ir::Op& op : nest.body) {
      const auto* f = op.get<scalar::For>();
      if (!f) continue;
      const Expr n = f->axes.back().extent;
      found |= n.op() == expr::Op::IntConst && n.integer() < warp;
    }
  }
  return found;
}

// Whether one nest behind a scan is all that anybody reads of it, and neighbouring threads write
// neighbouring elements: the steps are not the last axis.
bool replaces_states(std::span<const MapNest> nests, const std::set<std::string>& kept) {
  const auto& loop = nests[0].body[0].as<scalar::Loop>();
  for (const std::string& w : lower::written_by(nests[0])) {
    if (kept.contains(w)) return false;
  }
  const auto* around = loop.body.empty() ? nullptr : loop.body[0].get<scalar::For>();
  const auto* state = around ? around->body[0].get<scalar::Store>() : nullptr;
  const auto* store = nests.back().body[0].get<scalar::Store>();
  if (nests.size() != 2 || !state || !store || nests[1].axes.empty()) return false;
  const Expr last = state->indices.back();
  return last.op() == expr::Op::Var && last.name() != loop.var &&
         last.name() == around->axes.back().name && store->indices.back().op() == expr::Op::Var &&
         store->indices.back().name() == nests[1].axes.back().name &&
         nests[1].axes.back().extent == around->axes.back().extent;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// One kernel of points whose lines are chosen one after the other. Each is tried: what lowering
// refuses is not taken.
class PointsChooser {
 public:
  // What is asked of all of them.
  struct Given {
    const NestCosts& costs;
    const NestCosts::Where& where;  // it is launched
    const std::map<std::string, ir::TensorType>& buffers;
    const target::Target& target;
    ir::PassContext& context;
    bool fills_machine;  // as many points as it has threads
  };

  PointsChooser(const Given& given, ChosenKernel made, std::set<std::string> kept,
                const lower::FreshNames& names)
      : given_(given),
        points_(given.target.points),
        pool_(given.context.pool),
        made_(std::move(made)),
        kept_(std::move(kept)),
        scratch_(names),
        is_scan_(lower::is_scan(made_.nests[0])),
        // Elements behind a scan are a statement of its steps.
        counted_(is_scan_ ? Nests{lower::with_elements(made_.nests, pool_)} : made_.nests) {}

  Cover run(int64_t most_lanes) {
    cost_ = cost_of({.lanes = 1});
    // Lanes for each point, where all its loops are reductions.
    const Cost shared = most_lanes > 1 ? cost_of({.lanes = most_lanes}) : cost_;
    if (most_lanes <= 1 || !take_vectors(shared)) {
      take_lanes(most_lanes, shared);
      take_line();
      if (!take_transposed() && !take_spread()) take_each();
    }
    Cover out;
    out.cycles = cost_.cycles;
    out.prices.push_back(std::move(cost_.price));
    out.kernels.push_back(std::move(made_));
    return out;
  }

 private:
  using Nests = std::vector<MapNest>;

  struct Cost {
    double cycles = 0;
    Price price;
  };

  // Of the kernel with these lanes and points of a thread.
  Cost cost_of(NestCosts::Points kernel, const Nests& nests) const {
    kernel.nests = nests;
    kernel.kept = kept_;
    kernel.where = given_.where;
    const double cycles = given_.costs.points(kernel);
    return {cycles, [kernel = std::move(kernel)](const NestCosts& c) { return c.points(kernel); }};
  }
  Cost cost_of(NestCosts::Points kernel) const { return cost_of(std::move(kernel), counted_); }

  void take_cheaper(Cost other) {
    if (other.cycles < cost_.cycles) cost_ = std::move(other);
  }

  auto hinted() const {
    return [this](Expr e) { return given_.costs.hinted_extent(e); };
  }

  template <class Line>
  void add(const Line& line) {
    made_.lines.push_back(ir::make(line));
  }

  auto lowered() {
    diag::Sink ignored(given_.context.sink.sources());
    ir::PassContext own{pool_, ignored, {}};
    return lower::lower_points(made_.nests, kept_, given_.buffers, scratch_, points_, own);
  }

  // The steps of a scan along memory, in vectors.
  bool take_vectors(const Cost& shared) {
    const auto vectors =
        scan_vectors(made_.nests, kept_, given_.buffers, given_.target, hinted(), pool_);
    if (!vectors) return false;
    auto parts = lowered();
    const int64_t threads = std::max(vectors->lanes, points_.threads);
    if (!parts || !lower::walk_in_lines(*parts, *vectors, threads, given_.buffers, scratch_, pool_))
      return false;
    add(decision::Lanes{vectors->lanes, {}});
    add(decision::Each{vectors->each, {}});
    add(decision::Vector{.elements = vectors->vector});
    if (threads != points_.threads) add(decision::Threads{threads, {}});
    cost_ = shared;
    return true;
  }

  void take_lanes(int64_t most_lanes, const Cost& shared) {
    // The steps of a scan that lie along memory are walked by a warp.
    const bool is_worth = is_scan_
                              ? most_lanes > 1
                              : shared.cycles < cost_.cycles && !is_short(made_.nests, most_lanes);
    // A thread that walks along a scan alone has no time for elements: others compute them, unless
    // it writes them in place of the states.
    if (is_scan_ && made_.nests.size() > 1 && !replaces_states(made_.nests, kept_))
      cost_ = {kNever, [](const NestCosts&) { return kNever; }};
    if (is_worth) {
      auto parts = lowered();
      if (parts && lower::share_lanes(*parts, most_lanes, points_.threads, given_.target.limits,
                                      scratch_, pool_)) {
        lanes_ = most_lanes;
        cost_ = shared;
      }
    }
    add(decision::Lanes{lanes_, {}});
  }

  // Neighbouring points.
  void take_line() {
    each_ = lanes_ > 1 ? 1 : points_of_line(made_.nests, given_.buffers, given_.target, pool_);
    if (each_ <= 1) return;
    auto parts = lowered();
    if (!parts || !lower::widen(*parts, each_, points_.threads, pool_)) each_ = 1;
  }

  Expr extent_of(ir::Name axis) const {
    const ir::Axes& axes = made_.nests[0].axes;
    return std::find_if(axes.begin(), axes.end(), [&](const ir::Axis& a) { return a.name == axis; })
        ->extent;
  }

  // Threads along an axis on which each has `points`: as many as have some at the sizes that were
  // asked for, a power of two. Others would wait, and their share of the tile's memory too.
  int64_t needed_threads(Expr extent, int64_t points, int64_t most) const {
    if (!given_.costs.is_asked() && extent.op() != expr::Op::IntConst) return most;
    int64_t threads = 1;
    while (threads < most && static_cast<double>(threads * points) < hinted()(extent)) threads *= 2;
    return threads;
  }

  // Lines along two axes, where one tensor lies along the other.
  bool take_transposed() {
    if (lanes_ > 1 || each_ > 1) return false;
    const auto along = points_across(made_.nests, given_.buffers, given_.target, pool_);
    if (!along) return false;
    auto parts = lowered();
    const Expr last = made_.nests[0].axes.back().extent;
    const int64_t lines = needed_threads(last, along->each, points_.lines_across);
    const int64_t threads = std::max<int64_t>(
        given_.target.limits.warp_threads,
        lines * needed_threads(extent_of(along->axis), along->across, points_.threads / lines));
    const decision::Across across{along->axis, along->across, lines, {}};
    if (!parts || !lower::widen(*parts, along->each, threads, pool_) ||
        !lower::widen_across(*parts, across, threads, pool_))
      return false;
    add(decision::Each{along->each, {}});
    add(across);
    if (threads != points_.threads) add(decision::Threads{threads, {}});
    cost_ = cost_of({.each = along->each, .across = pool_.index(along->axis)}, made_.nests);
    return true;
  }

  bool take_spread() {
    const auto spread = each_ > 1    ? spread_lines(made_.nests, each_, given_.target, hinted())
                        : lanes_ > 1 ? std::nullopt
                                     : spread_points(made_.nests, given_.target, hinted(), pool_);
    if (!spread) return false;
    auto parts = lowered();
    const bool is_wide =
        parts && (each_ == 1 || lower::widen(*parts, each_, points_.threads, pool_));
    if (!is_wide || !lower::spread(*parts, *spread, points_.threads, pool_)) return false;
    add(decision::Each{each_, {}});
    add(*spread);
    const int64_t points = each_ > 1 ? each_ : *spread->apart * *spread->down;
    // Turns that are written out name what they load: other loops read it from registers.
    const int64_t held = each_ > 1 ? 0 : points_.unrolled;
    take_cheaper(cost_of({.each = points, .held = held}, made_.nests));
    return true;
  }

  void take_each() {
    if (lanes_ == 1 && each_ == 1) take_shared_turns();
    if (each_ > 1) take_cheaper(cost_of({.each = each_}, made_.nests));
    add(decision::Each{each_, {}});
    if (lanes_ > 1 || each_ > 1 || !given_.fills_machine) return;
    const auto parts = lowered();
    if (parts && lower::turn_facts(*parts, false, pool_)) add(decision::Unroll{1, {}});
  }

  // Neighbouring points whose loops load the same: each turn of several points loads it once.
  // A count of 65536 x 256 elements that come before each one 2.16 ms, with four points 1.02.
  void take_shared_turns() {
    const ir::Axes& axes = made_.nests[0].axes;
    double points = 1;
    for (const ir::Axis& a : axes) points *= std::max(hinted()(a.extent), 1.0);
    const auto resident =
        static_cast<double>(given_.target.board.sms * given_.target.limits.sm_threads);
    if (axes.empty() || points < resident * static_cast<double>(points_.each) ||
        hinted()(axes.back().extent) < static_cast<double>(points_.each) ||
        !share_turns(made_.nests, pool_))
      return;
    auto parts = lowered();
    if (parts && lower::widen(*parts, points_.each, points_.threads, pool_)) each_ = points_.each;
  }

  Given given_;
  const target::Points& points_;
  expr::ExprPool& pool_;
  ChosenKernel made_;
  std::set<std::string> kept_;
  lower::FreshNames scratch_;
  bool is_scan_;
  Nests counted_;
  Cost cost_;
  int64_t lanes_ = 1;
  int64_t each_ = 1;
};

}  // namespace

// Patches where they are predicted to be faster than points that threads have otherwise.
Cover Coverer::as_points(const Nests& nests, size_t count, const lower::FreshNames& names,
                         int64_t most_lanes) {
  Cover out = as_single_points(nests, count, names, most_lanes);
  const auto hinted = [&](Expr e) { return costs_.hinted_extent(e); };
  ChosenKernel made = kernel(Form::Points, nests, count);
  const auto patch = patch_points(made.nests, buffers_, target_, hinted, context_.pool);
  if (!patch) return out;
  const std::set<std::string> kept = kept_behind(nests, count);
  const NestCosts::Points kernel{made.nests, kept, where_};
  const double cycles = costs_.patches(kernel, *patch);
  diag::Sink ignored(context_.sink.sources());
  ir::PassContext own{context_.pool, ignored, {}};
  lower::FreshNames scratch = names;
  if (cycles >= out.cycles) return out;
  auto parts = lower::lower_points(made.nests, kept, buffers_, scratch, target_.points, own);
  if (!parts || !lower::patch(*parts, patch->line, target_.points.threads, context_.pool))
    return out;
  made.lines.push_back(ir::make(patch->line));
  out.kernels.clear();
  out.kernels.push_back(std::move(made));
  out.cycles = cycles;
  out.prices = {[kernel, patch = *patch](const NestCosts& c) { return c.patches(kernel, patch); }};
  return out;
}

Cover Coverer::as_single_points(const Nests& nests, size_t count, const lower::FreshNames& names,
                                int64_t most_lanes) {
  ChosenKernel made = kernel(Form::Points, nests, count);
  const PointsChooser::Given given{costs_,  where_,   buffers_,
                                   target_, context_, fills_machine(made.nests)};
  return PointsChooser(given, std::move(made), kept_behind(nests, count), names).run(most_lanes);
}

// Whether there are at least as many points as threads on the machine, of sizes that were asked
// for. Then threads have loads enough under way, and with 16 turns of each more than memory serves
// well: sums of 4096 elements for 524160 points 2.48 ms, 2.25 with one turn at a time.
bool Coverer::fills_machine(const Nests& nests) const {
  if (!costs_.is_asked()) return false;
  double points = 1;
  for (const ir::Axis& a : nests[0].axes) points *= costs_.hinted_extent(a.extent);
  return points >= static_cast<double>(target_.board.sms * target_.limits.sm_threads);
}

}  // namespace nautilus::choose
