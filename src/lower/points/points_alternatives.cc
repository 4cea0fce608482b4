// SPDX-License-Identifier: Apache-2.0
#include "lower/points/points_alternatives.h"

#include <fmt/format.h>

#include <bit>

#include "decision/choice.h"
#include "lower/points/patch_points.h"
#include "lower/points/points_loops.h"
#include "lower/points/resident_ctas.h"
#include "lower/points/scan_lines.h"
#include "lower/points/unroll_loops.h"
#include "lower/points/write_windows.h"
#include "matile/ops.h"
#include "matile/windows.h"

namespace nautilus::lower {
namespace {

using decision::Each;
using decision::Form;
using decision::Lanes;
using decision::Threads;

constexpr std::string_view kNoVectors =
    "it is no scan along memory whose steps only combine terms: `each` says how many points a "
    "thread has";

// The lines of one kernel.
class PointLines {
 public:
  // `rules`: answer what no line does; null: the lines are complete.
  PointLines(const ir::Block& alternative, const target::Target& target, PointAnswers* rules,
             ir::PassContext& context)
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
        unroll_(context_),
        windows_(context_),
        resident_(context_),
        threads_(context_) {
    read_last_ = decision::take_read_last(body_);
    lanes_.begin(body_);
    each_.begin(body_);
    vector_.begin(body_);
    across_.begin(body_);
    spread_.begin(body_);
    patch_.begin(body_);
    held_.begin(body_);
    unroll_.begin(body_);
    windows_.begin(body_);
    resident_.begin(body_);
    threads_.begin(body_);
  }
  PointLines(const PointLines&) = delete;
  PointLines& operator=(const PointLines&) = delete;

  // False if a line is refused.
  bool read() {
    const int64_t warp = target_.limits.warp_threads;
    const auto is_power = [](int64_t n, int64_t most) {
      return n >= 1 && n <= most && std::has_single_bit(static_cast<uint64_t>(n));
    };
    bool ok = decision::refuse_all(decision::lines(body_), "kernels of points have no such line",
                                   context_);
    if (threads() == 0 && !missing_.empty()) return refuse_missing();
    if (scan()) {
      ok &= read_scan();
    } else if (lanes_.asked() && !is_power(lanes(), warp)) {
      lanes_.refuse(fmt::format("lanes are a power of two up to {}", warp));
      ok = false;
    }
    const int64_t most_each = target_.points.line;
    if (!scan() && each_.asked() && !is_power(each(), most_each)) {
      each_.refuse(fmt::format("a thread has a power of two of points up to {}", most_each));
      ok = false;
    }
    if (across() && !is_power(across()->points.value_or(0), most_each)) {
      across_.refuse(fmt::format("a thread has a power of two of points up to {}", most_each));
      ok = false;
    }
    if (across() && across()->lines &&
        (*across()->lines < 1 || threads() % *across()->lines != 0)) {
      across_.refuse(
          fmt::format("lines along the last axis are a part of the CTA's {} threads", threads()));
      ok = false;
    }
    const auto is_spread = [&](const decision::Spread& s) {
      return is_power(s.threads.value_or(0), threads()) && threads() % *s.threads == 0 &&
             is_power(s.apart.value_or(0), most_each) && is_power(s.down.value_or(0), most_each);
    };
    if (spread() && !is_spread(*spread())) {
      spread_.refuse(fmt::format(
          "threads beside each other are a power of two and a part of the CTA's; a thread has a "
          "power of two of points up to {} along each axis",
          most_each));
      ok = false;
    }
    const auto is_patch = [&](const decision::Patch& p) {
      const int64_t side = target_.points.patch_side;
      return is_power(p.high.value_or(0), side) && is_power(p.wide.value_or(0), side) &&
             *p.high * *p.wide <= target_.points.patch_points;
    };
    if (patch() && !is_patch(*patch())) {
      patch_.refuse(fmt::format(
          "a thread has a power of two of points up to {} along each axis, and at most {}",
          target_.points.patch_side, target_.points.patch_points));
      ok = false;
    }
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
    const int64_t most_resident = target_.limits.sm_threads / std::max<int64_t>(threads(), 1);
    const int64_t resident = resident_.asked() ? resident_.asked()->tiles.value_or(0) : 1;
    if (resident < 1 || resident > most_resident) {
      resident_.refuse(fmt::format("1 to {} CTAs of {} threads share a multiprocessor",
                                   most_resident, threads()));
      ok = false;
    }
    const int64_t most = target_.limits.cta_threads;
    if (threads() < 1 || threads() % warp != 0 || threads() > most) {
      threads_.refuse(fmt::format("a CTA has a multiple of {} threads up to {}", warp, most));
      ok = false;
    }
    return ok;
  }

  // Neighbouring steps of a scan in a thread: what its lines say together.
  bool read_scan() {
    const int64_t warp = target_.limits.warp_threads;
    const auto is_power = [](int64_t n, int64_t most) {
      return n >= 1 && n <= most && std::has_single_bit(static_cast<uint64_t>(n));
    };
    const ScanLines s = *scan();
    bool ok = true;
    const auto refuse = [&](auto& line, const std::string& why) {
      line.refuse(why);
      ok = false;
    };
    const bool has_lanes = s.lanes == warp ? threads() % warp == 0 : s.lanes == threads();
    if (!has_lanes || !is_power(s.lanes, target_.limits.cta_threads))
      refuse(lanes_,
             fmt::format("a scan with vectors has {} lanes, or all threads of a CTA", warp));
    if (!is_power(s.vector, target_.memory.vector_bytes))
      refuse(vector_, fmt::format("a vector has a power of two of elements up to {}",
                                  target_.memory.vector_bytes));
    const int64_t most = target_.points.walk_each;
    if (!is_power(s.each, most) || s.each < s.vector)
      refuse(each_, fmt::format("a thread has whole vectors of a scan, up to {} elements", most));
    return ok;
  }

  int64_t lanes() const { return lanes_.asked() ? lanes_.asked()->count.value_or(0) : 1; }
  int64_t each() const { return each_.asked() ? each_.asked()->points.value_or(0) : 1; }
  // Of a scan with vectors; nothing without that line.
  std::optional<ScanLines> scan() const {
    if (!vector_.asked()) return std::nullopt;
    const int64_t vector = vector_.asked()->elements.value_or(0);
    ScanLines out{lanes(), each(), vector};
    if (!lanes_.asked()) out.lanes = rules_ ? rules_->scan_lanes() : lacks("lanes");
    if (!each_.asked()) out.each = rules_ ? rules_->scan_each(vector) : lacks("each");
    return out;
  }
  // Null if there is no such line.
  const decision::Across* across() const { return across_.asked(); }
  const decision::Held* held() const { return held_.asked(); }
  const decision::Spread* spread() const { return spread_.asked(); }
  const decision::Patch* patch() const { return patch_.asked(); }
  int64_t threads() const {
    if (threads_.asked()) return threads_.asked()->count.value_or(0);
    const auto steps = scan();
    return rules_ ? rules_->threads(steps ? steps->lanes : 0) : lacks("threads");
  }
  // Numbers of the target for such kernels, with the threads of this one.
  target::Points choice() const {
    target::Points out = target_.points;
    out.threads = threads();
    return out;
  }
  void refuse_lanes(std::string_view why) { lanes_.refuse(why); }
  void refuse_each(std::string_view why) { each_.refuse(why); }
  void refuse_vector(std::string_view why) { vector_.refuse(why); }
  void refuse_across(std::string_view why) { across_.refuse(why); }
  void refuse_held(std::string_view why) { held_.refuse(why); }
  // Loops of the kernel have as many turns under way as the line says. `over_parts`: of a kernel
  // that puts parts together.
  void unroll(LoweredKernel& parts, bool over_parts, expr::ExprPool& pool) {
    const auto facts = turn_facts(parts, over_parts, pool);
    if (!facts) return;
    const auto* line = unroll_.asked();
    const int64_t turns = line     ? line->turns.value_or(1)
                          : rules_ ? rules_->turns(*facts)
                                   : lacks("unroll");
    set_unroll(parts, turns);
    unroll_.took({turns, {}});
  }
  // Windows are written out as the line says. False if the line is refused.
  bool windows(LoweredKernel& parts) {
    const auto& points = parts.kernel.as<matile::Kernel>().body[0].as<matile::Points>();
    if (matile::sizes_of_windows(points).empty()) return true;
    const auto* line = windows_.asked();
    const int64_t turns = line     ? line->turns.value_or(0)
                          : rules_ ? rules_->windows(points)
                                   : lacks("windows");
    if (const std::string why = refuse_windows(parts, turns); !why.empty()) {
      windows_.refuse(why);
      return false;
    }
    set_windows(parts, turns);
    windows_.took({turns, {}});
    return true;
  }
  // Registers are left for as many CTAs as the line says; without one, as the compiler of the text
  // takes them.
  void resident(LoweredKernel& parts) {
    const auto* line = resident_.asked();
    const auto& points = parts.kernel.as<matile::Kernel>().body[0].as<matile::Points>();
    const int64_t ctas = line     ? line->tiles.value_or(1)
                         : rules_ ? rules_->resident(points, threads())
                                  : 1;
    set_resident(parts, ctas);
    if (line || ctas > 1) resident_.took({ctas, {}});
  }
  void refuse_spread(std::string_view why) { spread_.refuse(why); }
  void refuse_patch(std::string_view why) { patch_.refuse(why); }
  void refuse_threads(std::string_view why) { threads_.refuse(why); }

  // Notes what the kernel is.
  bool end(const LoweredKernel& parts, std::string_view name, Form form, const ir::Block& members,
           ir::PassContext& context) {
    if (!missing_.empty()) return refuse_missing();
    const auto& kernel = parts.kernel.as<matile::Kernel>();
    const auto& points = kernel.body[0].as<matile::Points>();
    lanes_.took({points.lanes_per_point.value_or(1), {}});
    each_.took({points.points_of_line.value_or(points.points_per_thread.value_or(1)), {}});
    for (const ir::Op& op : points.body) {
      const auto* walk = op.get<matile::LaneLoop>();
      if (!walk || !walk->vector) continue;
      each_.took({walk->each, {}});
      vector_.took({walk->vector, {}});
    }
    if (points.across) across_.took({points.across, points.points_across, points.lines_across, {}});
    if (points.spread) spread_.took({points.spread, points.points_apart, points.points_down, {}});
    if (points.patch)
      patch_.took({points.patch, points.patch_high, points.patch_over, points.patch_wide, {}});
    if (points.held) held_.took({points.held, {}});
    threads_.took({threads(), {}});
    if (!lanes_.end("") || !each_.end("") || !vector_.end(kNoVectors) ||
        !across_.end("kernels that put parts together turn nothing") ||
        !spread_.end("kernels that put parts together have no tiles") ||
        !patch_.end("kernels that put parts together have no patches") ||
        !held_.end("kernels that put parts together hold nothing") ||
        !unroll_.end("it has no loop whose turns can be taken together") ||
        !windows_.end("it has no window whose points or conditions share anything") ||
        !resident_.end("") || !threads_.end(""))
      return false;
    ir::Block all = members;
    all.insert(all.end(), decided_.begin(), decided_.end());
    if (rules_) all.insert(all.end(), read_last_.begin(), read_last_.end());
    decision::note_kernel(context.pool.name(name), form, all, kernel.name, context);
    return true;
  }

  // The kernel gets the lines that are read last.
  void leave(LoweredKernel& parts) const {
    if (rules_) return;
    auto kernel = parts.kernel.as<matile::Kernel>();
    kernel.body = decision::with_lines(std::move(kernel.body), read_last_);
    parts.kernel = ir::make(std::move(kernel));
  }

 private:
  // A line that nobody wrote and no rule answers for.
  int64_t lacks(std::string_view line) const {
    missing_ = line;
    return 0;
  }
  bool refuse_missing() {
    context_.sink.report(diag::Code::DecisionRefused, {},
                         fmt::format("`kernel ... points`: it has no line `{}`, which "
                                     "choose_point_lines writes",
                                     missing_));
    return false;
  }

  const target::Target& target_;
  PointAnswers* rules_;
  mutable std::string missing_;
  ir::Block decided_;
  ir::PassContext context_;
  ir::Block body_;
  ir::Block read_last_;
  decision::Choice<Lanes> lanes_;
  decision::Choice<Each> each_;
  decision::Choice<decision::Vector> vector_;
  decision::Choice<decision::Across> across_;
  decision::Choice<decision::Spread> spread_;
  decision::Choice<decision::Patch> patch_;
  decision::Choice<decision::Held> held_;
  decision::Choice<decision::Unroll> unroll_;
  decision::Choice<decision::Windows> windows_;
  decision::Choice<decision::Resident> resident_;
  decision::Choice<Threads> threads_;
};

constexpr std::string_view kNotShared =
    "its loops are not all sums, maxima or minima of independent values";
constexpr std::string_view kNotTurned =
    "it is no kernel of lines without loops that has this axis before its last";
constexpr std::string_view kNotSpread =
    "it has other points of a thread, branches, or loops of different lengths; a kernel with one "
    "axis has all threads along it";
constexpr std::string_view kNoPatch =
    "it has not two such axes, or other points of a thread, branches, or loops of different "
    "lengths";
constexpr std::string_view kNotWidened = "its points branch, or lanes share them";

// The kernel as its lines say, for all sizes.
bool follow(PointLines& lines, const PointsContext& points, Form form, LoweredKernel& parts,
            ir::PassContext& context) {
  const int64_t threads = lines.threads();
  if (lines.scan()) {
    const bool is_scan =
        walk_in_lines(parts, *lines.scan(), threads, points.buffers, points.names, context.pool);
    if (!is_scan) lines.refuse_vector(kNoVectors);
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
  if (lines.across() &&
      !turn(parts, *lines.across(), threads, points.target.points, context.pool)) {
    lines.refuse_across(kNotTurned);
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
  lines.unroll(parts, form == Form::Parts, context.pool);
  lines.resident(parts);
  return lines.windows(parts);
}

// The kernel says how many threads it has where they are not the target's.
void set_threads(LoweredKernel& parts, int64_t threads, const target::Target& target) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  auto points = kernel.body[0].as<matile::Points>();
  points.threads.reset();
  if (threads != target.points.threads) points.threads = threads;
  kernel.body[0] = ir::make(std::move(points));
  parts.kernel = ir::make(std::move(kernel));
}

std::optional<LoweredKernel> lower(const PointsContext& points, const PointLines& lines,
                                   ir::PassContext& context) {
  auto parts = lower_points(points.nests, points.kept, points.buffers, points.names, lines.choice(),
                            context);
  if (parts) set_threads(*parts, lines.threads(), points.target);
  return parts;
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
  if (!parts || !follow(lines, points, Form::Points, *parts, context) ||
      !lines.end(*parts, name, Form::Points, members, context))
    return std::nullopt;
  lines.leave(*parts);
  return parts;
}

std::optional<std::vector<LoweredKernel>> parts_alternatives(
    const PointsContext& points, std::span<const ir::Block> alternatives, bool are_optional,
    const ir::Block& members, ir::PassContext& context) {
  const std::string name = named_after(points.nests, points.kept);
  PointLines first(alternatives[0], points.target, points.rules, context);
  if (!first.read()) return std::nullopt;
  if (first.spread()) first.refuse_spread("kernels that put parts together have no tiles");
  if (first.held()) first.refuse_held("kernels that put parts together hold nothing");
  if (first.patch()) first.refuse_patch("kernels that put parts together have no patches");
  if (first.spread() || first.held() || first.patch()) return std::nullopt;
  auto one = lower(points, first, context);
  if (!one || !follow(first, points, Form::Parts, *one, context) ||
      !first.end(*one, name, Form::Parts, members, context))
    return std::nullopt;
  std::vector<LoweredKernel> out = {*one};
  for (const ir::Block& alternative : alternatives.subspan(1)) {
    PointLines lines(alternative, points.target, points.rules, context);
    if (!lines.read()) return std::nullopt;
    const bool is_shared = lines.lanes() > 1;
    const bool is_wide = lines.each() > 1;
    target::Points choice = lines.choice();
    if (is_shared) choice.part_lanes = lines.lanes();
    if (is_wide) choice.each = lines.each();
    if (is_shared == is_wide) {
      constexpr std::string_view kOne =
          "another alternative has several lanes for a point, or several points in a thread";
      lines.refuse_lanes(kOne);
      lines.refuse_each(kOne);
      lines.refuse_threads(kOne);
      return std::nullopt;
    }
    auto other = is_shared ? share_parts(out[0], choice, points.names, context.pool)
                           : widen_points(out[0], choice, points.names, context.pool);
    if (!other && are_optional) continue;
    if (!other) {
      lines.refuse_lanes(kNotShared);
      lines.refuse_each(kNotWidened);
      return std::nullopt;
    }
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
