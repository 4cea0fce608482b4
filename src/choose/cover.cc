// SPDX-License-Identifier: Apache-2.0
#include "choose/cover.h"

#include <algorithm>
#include <limits>

#include "choose/patch_points.h"
#include "choose/point_lines.h"
#include "choose/scan_vectors.h"
#include "choose/spread_points.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "lower/points/part_nests.h"
#include "lower/points/patch_points.h"
#include "lower/points/points_loops.h"
#include "lower/points/scan_elements.h"
#include "lower/points/scan_kernel.h"
#include "lower/points/split_reduction.h"
#include "lower/points/unroll_loops.h"
#include "scalar/ops.h"

namespace nautilus::choose {

using decision::Form;
using expr::Expr;
using lower::MapNest;

namespace {

// Identifies a list of nests among those of one run: by its length, by its first nest (steps and
// parts change its reads and loops), and by the moving sums that wait in the list.
std::string key_of(const std::vector<MapNest>& nests, const std::set<std::string>& moving) {
  std::string key = std::to_string(nests.size());
  for (const MapNest& nest : nests) {
    const bool is_first = &nest == nests.data();
    if (!is_first && !moving.contains(*lower::written_by(nest).begin())) continue;
    for (const ir::Op& op : nest.body) key += ir::print(op);
  }
  return key;
}

bool is_known(const MapNest& nest) {
  const auto is_constant = [](const ir::Axis& a) { return a.extent.op() == expr::Op::IntConst; };
  return std::all_of(nest.axes.begin(), nest.axes.end(), is_constant) &&
         std::all_of(nest.body.begin(), nest.body.end(), [&](const ir::Op& op) {
           const auto* f = op.get<scalar::For>();
           return !f || std::all_of(f->axes.begin(), f->axes.end(), is_constant);
         });
}

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

// Whether one nest after a scan is its only reader, and neighbouring threads write neighbouring
// elements: the steps are not the last axis.
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

// Whether the reduction over the axis may have this many terms.
bool has_terms(const MapNest& nest, ir::Name axis, int64_t least) {
  for (const ir::Op& op : nest.body) {
    const auto* loop = op.get<scalar::For>();
    if (!loop || loop->axes.empty() || loop->axes[0].name != axis) continue;
    const expr::Expr extent = loop->axes[0].extent;
    return extent.op() != expr::Op::IntConst || extent.integer() >= least;
  }
  return false;
}

}  // namespace

Cover Coverer::run(const Nests& nests, std::span<const MapNest> after) {
  after_ = after;
  buffers_ = program_.buffers;
  known_.clear();
  return best(nests, program_.names);
}

std::set<std::string> Coverer::kept_behind(const Nests& nests, size_t begin) const {
  return lower::kept_for(lower::kept_for(program_.outputs, after_),
                         std::span<const MapNest>(nests).subspan(begin));
}

// The first `count` nests as one kernel.
ChosenKernel Coverer::kernel(Form form, const Nests& nests, size_t count) const {
  ChosenKernel out;
  out.form = form;
  out.nests.assign(nests.begin(), nests.begin() + static_cast<std::ptrdiff_t>(count));
  const std::string name = form == Form::Rows
                               ? *lower::written_by(out.nests.back()).begin()
                               : lower::named_after(out.nests, kept_behind(nests, count));
  out.name = context_.pool.name(name);
  decision::Fuse fuse;
  for (const MapNest& nest : out.nests) {
    for (const std::string& w : lower::written_by(nest)) {
      if (w != name) fuse.statements.push_back(context_.pool.name(w));
    }
  }
  if (!fuse.statements.empty()) out.lines.push_back(ir::make(fuse));
  return out;
}

// The cheapest kernel for the first nests together with the best cover of the rest. Of equal ones
// the first that was considered.
Cover Coverer::best(const Nests& nests, lower::FreshNames names) {
  if (nests.empty()) return {};
  const std::string key = key_of(nests, moving_);
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  Cover out;
  bool has_one = false;
  const auto rest = [&](size_t count) {
    return Nests(nests.begin() + static_cast<std::ptrdiff_t>(count), nests.end());
  };
  if (lower::is_over_parts(nests[0], program_.computed)) {
    Cover parts = as_parts(nests);
    const size_t count = parts.kernels[0].nests.size();
    consider(std::move(parts), rest(count), names, out, has_one);
  } else {
    if (auto rows = as_rows(nests, true)) {
      const size_t count = rows->kernels[0].nests.size();
      consider(std::move(*rows), rest(count), names, out, has_one);
    }
    // The combination of parts is one kernel: its line covers the whole statement.
    if (!reads_any(nests[0], parts_)) {
      in_steps(nests, names, out, has_one);
      in_parts(nests, names, out, has_one);
      in_pieces(nests, names, out, has_one);
    }
    if (auto elements = as_rows(nests, false)) {
      const size_t count = elements->kernels[0].nests.size();
      consider(std::move(*elements), rest(count), names, out, has_one);
    }
    for (size_t count = nests.size(); count > 1; --count) {
      auto columns = as_columns(nests, count, names);
      if (!columns) continue;
      consider(std::move(*columns), rest(count), names, out, has_one);
      break;
    }
    for (size_t count = points_end(nests); count > 0; --count)
      consider(as_points(nests, count, names, target_.limits.warp_threads), rest(count), names, out,
               has_one);
  }
  known_.emplace(key, out);
  return out;
}

void Coverer::consider(Cover cover, const Nests& rest, const lower::FreshNames& names,
                       Cover& best_cover, bool& has_one) {
  if (has_one && cover.cycles >= best_cover.cycles) return;
  Cover behind = best(rest, names);
  cover.cycles += behind.cycles;
  if (has_one && cover.cycles >= best_cover.cycles) return;
  for (ChosenKernel& k : behind.kernels) cover.kernels.push_back(std::move(k));
  for (auto& [statement, lines] : behind.inner) cover.inner[statement] = std::move(lines);
  for (auto& b : behind.buffers) cover.buffers.push_back(std::move(b));
  best_cover = std::move(cover);
  has_one = true;
}

std::optional<Cover> Coverer::as_rows(const Nests& nests, bool has_reductions) {
  const auto group = has_reductions ? lower::row_group(nests, target_, context_.pool)
                                    : lower::element_group(nests, target_, context_.pool);
  if (!group) return std::nullopt;
  Cover out;
  out.kernels.push_back(kernel(Form::Rows, nests, group->nests));
  out.cycles = costs_.rows(*group, kept_behind(nests, group->nests));
  return out;
}

// The end of the nests that can share their points with the first.
size_t Coverer::points_end(const Nests& nests) const {
  std::set<std::string> written = lower::written_by(nests[0]);
  size_t end = 1;
  for (; end < nests.size(); ++end) {
    if (!lower::can_join(nests[0], nests[end], written, context_.pool)) break;
    written.merge(lower::written_by(nests[end]));
  }
  return end;
}

// Patches where they are predicted to be faster than points that threads have otherwise.
Cover Coverer::as_points(const Nests& nests, size_t count, const lower::FreshNames& names,
                         int64_t most_lanes) {
  Cover out = as_single_points(nests, count, names, most_lanes);
  const auto hinted = [&](Expr e) { return costs_.hinted_extent(e); };
  ChosenKernel made = kernel(Form::Points, nests, count);
  const auto patch = patch_points(made.nests, buffers_, target_, hinted, context_.pool);
  if (!patch) return out;
  const std::set<std::string> kept = kept_behind(nests, count);
  const double cycles = costs_.patches(made.nests, kept, *patch, where_);
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
  return out;
}

Cover Coverer::as_single_points(const Nests& nests, size_t count, const lower::FreshNames& names,
                                int64_t most_lanes) {
  Cover out;
  ChosenKernel made = kernel(Form::Points, nests, count);
  const std::set<std::string> kept = kept_behind(nests, count);
  int64_t lanes = 1;
  // Elements after a scan are a statement of its steps.
  const Nests counted = lower::is_scan(made.nests[0])
                            ? Nests{lower::with_elements(made.nests, context_.pool)}
                            : made.nests;
  out.cycles = costs_.points(counted, 1, kept, 1, where_);
  diag::Sink ignored(context_.sink.sources());
  ir::PassContext own{context_.pool, ignored, {}};
  lower::FreshNames scratch = names;
  const auto trial = [&] {
    return lower::lower_points(made.nests, kept, buffers_, scratch, target_.points, own);
  };
  // Lanes for each point, where all its loops are reductions.
  const double shared =
      most_lanes > 1 ? costs_.points(counted, most_lanes, kept, 1, where_) : out.cycles;
  // A warp walks along the steps of a scan that are contiguous in memory.
  const bool is_worth = lower::is_scan(made.nests[0])
                            ? most_lanes > 1
                            : shared < out.cycles && !is_short(made.nests, most_lanes);
  const auto hinted = [&](Expr e) { return costs_.hinted_extent(e); };
  const auto vectors =
      most_lanes > 1 ? scan_vectors(made.nests, kept, buffers_, target_, hinted, context_.pool)
                     : std::nullopt;
  if (vectors) {
    auto parts = trial();
    const int64_t threads = std::max(vectors->lanes, target_.points.threads);
    if (parts &&
        lower::walk_in_lines(*parts, *vectors, threads, buffers_, scratch, context_.pool)) {
      made.lines.push_back(ir::make(decision::Lanes{vectors->lanes, {}}));
      made.lines.push_back(ir::make(decision::Each{vectors->each, {}}));
      made.lines.push_back(ir::make(decision::Vector{vectors->vector, {}}));
      if (threads != target_.points.threads)
        made.lines.push_back(ir::make(decision::Threads{threads, {}}));
      out.cycles = shared;
      out.kernels.push_back(std::move(made));
      return out;
    }
  }
  // A thread that walks along a scan alone has no time for elements: others compute them, unless
  // it writes them in place of the states.
  if (lower::is_scan(made.nests[0]) && count > 1 && !replaces_states(made.nests, kept))
    out.cycles = std::numeric_limits<double>::infinity();
  if (is_worth) {
    auto parts = trial();
    if (parts && lower::share_lanes(*parts, most_lanes, target_.points.threads, target_.limits,
                                    scratch, context_.pool)) {
      lanes = most_lanes;
      out.cycles = shared;
    }
  }
  made.lines.push_back(ir::make(decision::Lanes{lanes, {}}));
  int64_t each = lanes > 1 ? 1 : points_of_line(made.nests, buffers_, target_, context_.pool);
  if (each > 1) {
    auto parts = trial();
    if (!parts || !lower::widen(*parts, each, target_.points.threads, context_.pool)) each = 1;
  }
  const auto turned = lanes > 1 || each > 1
                          ? std::nullopt
                          : points_across(made.nests, buffers_, target_, context_.pool);
  if (turned) {
    auto parts = trial();
    const decision::Across across{turned->axis, turned->across, target_.points.lines_across, {}};
    if (parts && lower::widen(*parts, turned->each, target_.points.threads, context_.pool) &&
        lower::turn(*parts, across, target_.points.threads, target_.points, context_.pool)) {
      made.lines.push_back(ir::make(decision::Each{turned->each, {}}));
      made.lines.push_back(ir::make(across));
      out.cycles = costs_.points(made.nests, 1, kept, turned->each, where_,
                                 context_.pool.index(turned->axis));
      out.kernels.push_back(std::move(made));
      return out;
    }
  }
  const auto spread = each > 1    ? spread_lines(made.nests, each, target_, hinted)
                      : lanes > 1 ? std::nullopt
                                  : spread_points(made.nests, target_, hinted, context_.pool);
  if (spread) {
    auto parts = trial();
    const bool is_wide =
        parts && (each == 1 || lower::widen(*parts, each, target_.points.threads, context_.pool));
    if (is_wide && lower::spread(*parts, *spread, target_.points.threads, context_.pool)) {
      made.lines.push_back(ir::make(decision::Each{each, {}}));
      made.lines.push_back(ir::make(*spread));
      const int64_t points = each > 1 ? each : *spread->apart * *spread->down;
      // Turns that are written out name what they load: other loops read it from registers.
      const int64_t held = each > 1 ? 0 : target_.points.unrolled;
      out.cycles =
          std::min(out.cycles, costs_.points(made.nests, 1, kept, points, where_, {}, held));
      out.kernels.push_back(std::move(made));
      return out;
    }
  }
  if (each > 1) out.cycles = std::min(out.cycles, costs_.points(made.nests, 1, kept, each, where_));
  made.lines.push_back(ir::make(decision::Each{each, {}}));
  if (lanes == 1 && each == 1 && fills_machine(made.nests)) {
    const auto parts = trial();
    if (parts && lower::can_unroll(*parts, false, context_.pool))
      made.lines.push_back(ir::make(decision::Unroll{1, {}}));
  }
  out.kernels.push_back(std::move(made));
  return out;
}

// Whether there are at least as many points as threads on the machine, of sizes that were asked
// for. Then enough loads are in flight, and 16 turns of each thread would be more than memory
// serves well: sums of 4096 elements for 524160 points 2.48 ms, 2.25 with one turn at a time.
bool Coverer::fills_machine(const Nests& nests) const {
  if (!costs_.is_asked()) return false;
  double points = 1;
  for (const ir::Axis& a : nests[0].axes) points *= costs_.hinted_extent(a.extent);
  return points >= static_cast<double>(target_.board.sms * target_.limits.sm_threads);
}

Cover Coverer::as_parts(const Nests& nests) {
  const size_t count = lower::part_nests_end(nests, 0, program_.computed, context_.pool);
  Cover out;
  out.kernels.push_back(kernel(Form::Parts, nests, count));
  out.cycles = costs_.points(out.kernels[0].nests, 1, kept_behind(nests, count), 1, {});
  return out;
}

// A long reduction with few results, in parts (split_reduction.h); lowering makes the nests. A
// single result has as many parts as a CTA then reduces as one row. Several results have fewer, or
// as many as lanes combine just as fast.
void Coverer::in_parts(const Nests& nests, const lower::FreshNames& names, Cover& best_cover,
                       bool& has_one) {
  const target::Points& points = target_.points;
  if (nests[0].axes.empty())
    return in_parts(nests, points.parts_of_one, names, best_cover, has_one);
  in_parts(nests, points.parts_of_many, names, best_cover, has_one);
  in_parts(nests, points.parts_of_many * points.part_lanes, names, best_cover, has_one);
}

void Coverer::in_parts(const Nests& nests, int64_t parts, const lower::FreshNames& names,
                       Cover& best_cover, bool& has_one) {
  lower::FreshNames own = names;
  const target::Points& points = target_.points;
  const bool is_one = nests[0].axes.empty();
  // A part of one term reduces nothing.
  const int64_t least = std::max(is_one ? 0 : points.long_reduction, 2 * parts);
  const ir::Name axis = lower::splittable_axis(nests[0], buffers_, context_.pool);
  if (!axis || !has_terms(nests[0], axis, least)) return;
  const bool is_for_all_sizes = is_one || is_known(nests[0]);
  decision::Split line{.axis = axis, .parts = parts};
  if (!is_for_all_sizes) {
    line.terms = points.long_reduction;
    line.results = points.few_results;
  }
  const auto s = lower::split_reduction(nests[0], buffers_, line, own, context_.pool);
  if (!s) return;
  buffers_.insert_or_assign(std::string(s->buffer.str()), s->type);
  parts_.emplace(s->buffer.str());
  costs_.declare(s->buffer, {s->type.dtype, [&] {
                               ir::Exprs dims = s->type.dims;
                               dims[0] = context_.pool.integer(s->parts);
                               return dims;
                             }()});
  Nests tail(nests.begin() + 1, nests.end());
  Nests two = {s->partial, s->final};
  two.insert(two.end(), tail.begin(), tail.end());
  // Neighbouring parts have neighbouring elements, so each part has a thread instead of lanes.
  where_ = {s->condition, true};
  Cover out = as_points(two, 1, own, 1);
  where_ = {};
  out.kernels[0].nests.clear();
  two.erase(two.begin());
  if (!is_for_all_sizes) {
    where_ = {s->condition, true};
    Cover all = as_points(two, 1, own, points.part_lanes);
    where_ = {s->condition, false};
    Cover whole = as_points(nests, 1, own, 1);
    where_ = {};
    out.cycles += whole.cycles;
    all.kernels[0].nests = {nests[0]};
    all.kernels[0].lines.insert(all.kernels[0].lines.begin(), ir::make(line));
    all.kernels[0].or_whole = true;
    out.cycles += all.cycles;
    out.kernels.push_back(std::move(all.kernels[0]));
    consider(std::move(out), tail, own, best_cover, has_one);
    return;
  }
  // The kernel that combines the parts may have more nests; its first nest is this one again.
  if (has_one && out.cycles >= best_cover.cycles) return;
  Cover behind = best(two, own);
  if (behind.kernels.empty() || behind.kernels[0].nests.empty()) return;
  behind.kernels[0].nests[0] = nests[0];
  behind.kernels[0].lines.push_back(ir::make(line));
  behind.cycles += out.cycles;
  if (has_one && behind.cycles >= best_cover.cycles) return;
  behind.kernels.insert(behind.kernels.begin(), std::move(out.kernels[0]));
  best_cover = std::move(behind);
  has_one = true;
}

}  // namespace nautilus::choose
