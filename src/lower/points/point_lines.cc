// SPDX-License-Identifier: Apache-2.0
#include "lower/points/point_lines.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_set>

#include "lower/points/resident_ctas.h"
#include "lower/points/unroll_loops.h"
#include "lower/points/write_windows.h"
#include "matile/point_layout.h"
#include "matile/windows.h"

namespace nautilus::lower {
namespace {

constexpr std::string_view kNoVectors =
    "it is no scan along memory whose steps only combine terms: `each` says how many points a "
    "thread has";

bool is_power(int64_t n, int64_t most) {
  return n >= 1 && n <= most && std::has_single_bit(static_cast<uint64_t>(n));
}

}  // namespace

PointLines::PointLines(const ir::Block& alternative, const target::Target& target,
                       PointAnswers* rules, ir::PassContext& context)
    : target_(target),
      rules_(rules),
      context_(context.with(context.sink, decided_)),
      body_(decision::with_lines({}, alternative)),
      lanes_(context_),
      each_(context_),
      vector_(context_),
      across_(context_),
      spread_(context_),
      patch_(context_),
      held_(context_),
      axes_(context_),
      private_(context_),
      unroll_(context_),
      windows_(context_),
      resident_(context_),
      threads_(context_),
      serves_(context_) {
  read_last_ = decision::take_read_last(body_);
  lanes_.begin(body_);
  each_.begin(body_);
  vector_.begin(body_);
  across_.begin(body_);
  spread_.begin(body_);
  patch_.begin(body_);
  held_.begin(body_);
  axes_.begin(body_);
  private_.begin(body_);
  unroll_.begin(body_);
  windows_.begin(body_);
  resident_.begin(body_);
  threads_.begin(body_);
  serves_.begin(body_);
}

bool PointLines::read() {
  bool ok =
      decision::refuse_all(decision::lines(body_), "kernels of points have no such line", context_);
  if (threads() == 0 && !missing_.empty()) return refuse_missing();
  ok &= scan() ? read_scan() : read_lanes();
  ok &= read_across();
  if (!missing_.empty()) return refuse_missing();
  ok &= read_spread();
  ok &= read_patch();
  ok &= read_turns();
  ok &= read_threads();
  if (ok && is_private()) ok &= read_private();
  return missing_.empty() ? ok : refuse_missing();
}

bool PointLines::read_lanes() {
  const int64_t warp = target_.limits.warp_threads;
  const int64_t most_each = target_.points.line;
  bool ok = true;
  if (lanes_.asked() && !is_power(lanes(), warp)) {
    lanes_.refuse(fmt::format("lanes are a power of two up to {}", warp));
    ok = false;
  }
  if (each_.asked() && !is_power(each(), most_each)) {
    each_.refuse(fmt::format("a thread has a power of two of points up to {}", most_each));
    ok = false;
  }
  return ok;
}

bool PointLines::read_across() {
  if (!across_.asked()) return true;
  const decision::Across line = *across();
  if (!missing_.empty()) return false;
  const int64_t most_each = target_.points.line;
  const int64_t points = line.points.value_or(0);
  if (points < 2 || !is_power(points, most_each)) {
    across_.refuse(
        fmt::format("a thread has a power of two of points from 2 to {} along this axis, not {}",
                    most_each, points));
    return false;
  }
  if (*line.lines < 1 || threads() % *line.lines != 0) {
    across_.refuse(
        fmt::format("lines along the last axis are a part of the CTA's {} threads", threads()));
    return false;
  }
  return true;
}

bool PointLines::read_spread() {
  const int64_t most_each = target_.points.line;
  const auto is_spread = [&](const decision::Spread& s) {
    return is_power(s.threads.value_or(0), threads()) && threads() % *s.threads == 0 &&
           is_power(s.apart.value_or(0), most_each) && is_power(s.down.value_or(0), most_each);
  };
  if (!spread() || is_spread(*spread())) return true;
  spread_.refuse(fmt::format(
      "threads beside each other are a power of two and a part of the CTA's; a thread has a "
      "power of two of points up to {} along each axis",
      most_each));
  return false;
}

bool PointLines::read_patch() {
  const auto is_patch = [&](const decision::Patch& p) {
    const int64_t side = target_.points.patch_side;
    return is_power(p.high.value_or(0), side) && is_power(p.wide.value_or(0), side) &&
           *p.high * *p.wide <= target_.points.patch_points;
  };
  if (!patch() || is_patch(*patch())) return true;
  patch_.refuse(
      fmt::format("a thread has a power of two of points up to {} along each axis, and at most {}",
                  target_.points.patch_side, target_.points.patch_points));
  return false;
}

bool PointLines::read_turns() {
  bool ok = true;
  const int64_t most_held = target_.points.held_registers;
  if (held() && !is_power(held()->turns.value_or(0), most_held)) {
    held_.refuse(fmt::format("turns are a power of two up to {}", most_held));
    ok = false;
  }
  const int64_t most_turns = target_.points.most_unrolled;
  const int64_t turns = unroll_.asked() ? unroll_.asked()->turns.value_or(0) : 1;
  if (turns < 1 || turns > most_turns) {
    unroll_.refuse(fmt::format("1 to {} turns are written one after the other", most_turns));
    ok = false;
  }
  return ok;
}

bool PointLines::read_threads() {
  bool ok = true;
  const int64_t most_resident = target_.limits.sm_threads / std::max<int64_t>(threads(), 1);
  const int64_t resident = resident_.asked() ? resident_.asked()->tiles.value_or(0) : 1;
  if (resident < 1 || resident > most_resident) {
    resident_.refuse(
        fmt::format("1 to {} CTAs of {} threads share a multiprocessor", most_resident, threads()));
    ok = false;
  }
  const int64_t warp = target_.limits.warp_threads;
  const int64_t most = target_.limits.cta_threads;
  if (threads() < 1 || threads() % warp != 0 || threads() > most) {
    threads_.refuse(fmt::format("a CTA has a multiple of {} threads up to {}", warp, most));
    ok = false;
  }
  return ok;
}

bool PointLines::read_private() {
  const target::Limits& limits = target_.limits;
  const int64_t most = std::min<int64_t>(limits.sm_threads / threads(), limits.sm_ctas);
  if (private_ctas() >= 1 && private_ctas() <= most) return true;
  private_.refuse(
      fmt::format("1 to {} CTAs of {} threads share a multiprocessor", most, threads()));
  return false;
}

int64_t PointLines::private_ctas() const {
  if (private_.asked()->ctas) return *private_.asked()->ctas;
  return rules_ ? rules_->private_ctas(threads()) : lacks("private on ctas");
}

// Neighbouring steps of a scan in a thread: what its lines say together.
bool PointLines::read_scan() {
  const int64_t warp = target_.limits.warp_threads;
  const ScanLines s = *scan();
  bool ok = true;
  const auto refuse = [&](auto& line, const std::string& why) {
    line.refuse(why);
    ok = false;
  };
  const bool has_lanes = s.lanes == warp ? threads() % warp == 0 : s.lanes == threads();
  if (!has_lanes || !is_power(s.lanes, target_.limits.cta_threads))
    refuse(lanes_, fmt::format("a scan with vectors has {} lanes, or all threads of a CTA", warp));
  if (!is_power(s.vector, target_.memory.vector_bytes))
    refuse(vector_, fmt::format("a vector has a power of two of elements up to {}",
                                target_.memory.vector_bytes));
  const int64_t most = target_.points.walk_each;
  if (!is_power(s.each, most) || s.each < s.vector)
    refuse(each_, fmt::format("a thread has whole vectors of a scan, up to {} elements", most));
  return ok;
}

std::optional<ScanLines> PointLines::scan() const {
  if (!vector_.asked()) return std::nullopt;
  const int64_t vector = vector_.asked()->elements.value_or(0);
  ScanLines out{lanes(), each(), vector};
  if (!lanes_.asked()) out.lanes = rules_ ? rules_->scan_lanes() : lacks("lanes");
  if (!each_.asked()) out.each = rules_ ? rules_->scan_each(vector) : lacks("each");
  return out;
}

std::optional<decision::Across> PointLines::across() const {
  if (!across_.asked()) return std::nullopt;
  decision::Across out = *across_.asked();
  if (!out.lines) out.lines = rules_ ? rules_->lines_across() : lacks("across ... lines");
  return out;
}

int64_t PointLines::threads() const {
  if (threads_.asked()) return threads_.asked()->count.value_or(0);
  const auto steps = scan();
  return rules_ ? rules_->threads(steps ? steps->lanes : 0) : lacks("threads");
}

std::optional<decision::Serves> PointLines::serves(const ServedFacts& facts) {
  std::optional<decision::Serves> out;
  if (serves_.asked()) {
    out = *serves_.asked();
  } else if (rules_) {
    out = rules_->serves(facts);
  } else {
    lacks("serves");
  }
  if (out) serves_.took(*out);
  return out;
}

void PointLines::refuse_served(std::string_view why) {
  if (serves_.asked()) return serves_.refuse(why);
  if (!missing_.empty()) {
    refuse_missing();
    return;
  }
  lanes() > 1 ? lanes_.refuse(why) : each_.refuse(why);
}

target::Points PointLines::choice() const {
  target::Points out = target_.points;
  out.threads = threads();
  return out;
}

void PointLines::refuse_no_scan() { vector_.refuse(kNoVectors); }

bool PointLines::order_axes(LoweredKernel& parts, const MapNest* terms) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  matile::Points points = matile::points_of(kernel);
  const bool has_rule = rules_ && terms && points.axes.size() > 1;
  if (!axes_.asked() && !has_rule) return true;
  const ir::Names names = axes_.asked() ? axes_.asked()->axes : rules_->axes_of_terms(*terms);
  ir::Axes ordered;
  for (const ir::Name name : names) {
    for (const ir::Axis& a : points.axes) {
      if (a.name == name) ordered.push_back(a);
    }
  }
  if (names.size() != points.axes.size() || ordered.size() != points.axes.size() ||
      std::unordered_set<ir::Name>(names.begin(), names.end()).size() != names.size()) {
    std::string own;
    for (const ir::Axis& a : points.axes)
      own += (own.empty() ? "" : ", ") + std::string(a.name.str());
    axes_.refuse(fmt::format("the kernel has the axes {}, each once", own));
    return false;
  }
  points.axes = ordered;
  axes_.took({names, {}});
  matile::set_points(kernel, std::move(points));
  parts.kernel = ir::make(std::move(kernel));
  return true;
}

void PointLines::unroll(LoweredKernel& parts, bool over_parts, expr::ExprPool& pool) {
  const auto facts = turn_facts(parts, over_parts, pool);
  if (!facts) return;
  const auto* line = unroll_.asked();
  const int64_t turns = line     ? line->turns.value_or(1)
                        : rules_ ? rules_->turns(*facts)
                                 : lacks("unroll");
  set_unroll(parts, turns);
  unroll_.took({turns, {}});
}

bool PointLines::windows(LoweredKernel& parts) {
  const auto& kernel = parts.kernel.as<matile::Kernel>();
  if (matile::sizes_of_windows(kernel).empty()) return true;
  const auto* line = windows_.asked();
  const int64_t turns = line     ? line->turns.value_or(0)
                        : rules_ ? rules_->windows(kernel)
                                 : lacks("windows");
  if (const std::string why = refuse_windows(parts, turns); !why.empty()) {
    windows_.refuse(why);
    return false;
  }
  set_windows(parts, turns);
  windows_.took({turns, {}});
  return true;
}

void PointLines::resident(LoweredKernel& parts) {
  const auto* line = resident_.asked();
  const int64_t ctas = line     ? line->tiles.value_or(1)
                       : rules_ ? rules_->resident(parts.kernel.as<matile::Kernel>(), threads())
                                : 1;
  set_resident(parts, ctas);
  if (line || ctas > 1) resident_.took({ctas, {}});
}

bool PointLines::end(const LoweredKernel& parts, std::string_view name, decision::Form form,
                     const ir::Block& members, ir::PassContext& context) {
  if (!missing_.empty()) return refuse_missing();
  const auto& kernel = parts.kernel.as<matile::Kernel>();
  const matile::PointLayout layout = matile::point_layout(kernel);
  lanes_.took({layout.lanes.value_or(1), {}});
  each_.took({layout.neighbours(), {}});
  for (const ir::Op& op : matile::points_of(kernel).body) {
    const auto* walk = op.get<matile::LaneLoop>();
    if (!walk || !walk->vector) continue;
    each_.took({walk->each, {}});
    if (vector_.asked() && vector_.asked()->start != decision::VectorStart::Row) {
      vector_.refuse("vectors of a scan begin with its row");
      return false;
    }
    vector_.took({.elements = walk->vector});
  }
  if (layout.across) across_.took(*layout.across);
  if (layout.spread) spread_.took(*layout.spread);
  if (layout.patch) patch_.took(*layout.patch);
  if (layout.held) held_.took({layout.held, {}});
  if (form == decision::Form::Scatter)
    private_.took(layout.is_private ? decision::Private{decision::Switch::On, private_ctas(), {}}
                                    : decision::Private{});
  threads_.took({threads(), {}});
  if (!lanes_.end("") || !each_.end("") || !vector_.end(kNoVectors) ||
      !across_.end("kernels that put parts together turn nothing") ||
      !spread_.end("kernels that put parts together have no tiles") ||
      !patch_.end("kernels that put parts together have no patches") ||
      !held_.end("kernels that put parts together hold nothing") ||
      !axes_.end("kernels that put parts together have the axes of their results") ||
      !private_.end("its threads have results, not terms") ||
      !unroll_.end("it has no loop whose turns can be taken together") ||
      !windows_.end("it has no window whose points or conditions share anything") ||
      !resident_.end("") || !threads_.end("") ||
      !serves_.end("it runs for all sizes that no other alternative of it serves"))
    return false;
  ir::Block all = members;
  all.insert(all.end(), decided_.begin(), decided_.end());
  if (rules_) all.insert(all.end(), read_last_.begin(), read_last_.end());
  decision::note_kernel(context.pool.name(name), form, all, kernel.name, context);
  return true;
}

void PointLines::leave(LoweredKernel& parts) const {
  if (rules_) return;
  auto kernel = parts.kernel.as<matile::Kernel>();
  kernel.body = decision::with_lines(std::move(kernel.body), read_last_);
  parts.kernel = ir::make(std::move(kernel));
}

int64_t PointLines::lacks(std::string_view line) const {
  missing_ = line;
  return 0;
}

bool PointLines::refuse_missing() {
  context_.sink.report(diag::Code::DecisionRefused, {},
                       fmt::format("`kernel ... points`: it has no line `{}`, which "
                                   "choose_point_lines writes",
                                   missing_));
  return false;
}

}  // namespace nautilus::lower
