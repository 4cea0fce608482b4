// SPDX-License-Identifier: Apache-2.0
#include "choose/cover.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "choose/points/point_lines.h"
#include "choose/points/scatter_axes.h"
#include "choose/rows/short_rows.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "lower/places/scatter_nests.h"
#include "lower/points/own_results.h"
#include "lower/points/part_nests.h"
#include "lower/points/points_loops.h"
#include "lower/points/split_reduction.h"
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

// Whether the reduction over the axis may have so many terms.
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

double Cover::cycles_on(const NestCosts& costs) const {
  NestCosts own = costs;
  for (const auto& [name, type] : priced) own.declare(name, type);
  double sum = 0;
  for (const Price& price : prices) sum += price(own);
  return sum;
}

void Cover::append(Cover behind) {
  cycles += behind.cycles;
  for (ChosenKernel& k : behind.kernels) kernels.push_back(std::move(k));
  for (auto& [statement, lines] : behind.inner) {
    ir::Block& known = inner[statement];
    known.insert(known.end(), lines.begin(), lines.end());
  }
  for (auto& b : behind.buffers) buffers.push_back(std::move(b));
  for (auto& b : behind.priced) priced.push_back(std::move(b));
  for (Price& p : behind.prices) prices.push_back(std::move(p));
}

void Coverer::Cheapest::take(Cover other) {
  if (has_one && other.cycles >= cover.cycles) return;
  cover = std::move(other);
  has_one = true;
}

void Coverer::begin(std::span<const MapNest> after) {
  after_ = after;
  buffers_ = program_.buffers;
  known_.clear();
}

Cover Coverer::run(const Nests& nests, std::span<const MapNest> after) {
  begin(after);
  return best(nests, program_.names);
}

std::vector<Cover> Coverer::run_all(const Nests& nests, std::span<const MapNest> after) {
  begin(after);
  return alternatives(nests, program_.names);
}

std::vector<Cover> Coverer::alternatives(const Nests& nests, const lower::FreshNames& names) {
  std::vector<Head> heads;
  known_.erase(key_of(nests, moving_));
  heads_ = &heads;
  std::vector<Cover> out = {best(nests, names)};
  heads_ = nullptr;
  bool is_found = false;  // the head of the best
  for (const Head& head : heads) {
    Cover cover = head.cover;
    cover.append(best(head.rest, head.names));
    if (!std::isfinite(cover.cycles)) continue;
    if (is_found || cover.cycles != out[0].cycles) {
      out.push_back(std::move(cover));
      continue;
    }
    is_found = true;
    if (head.rest.empty()) continue;
    std::vector<Cover> behind = alternatives(head.rest, head.names);
    for (size_t k = 1; k < behind.size(); ++k) {
      out.push_back(head.cover);
      out.back().append(std::move(behind[k]));
    }
  }
  return out;
}

void Coverer::add(Price price, Cover& out) const {
  out.cycles += price(costs_);
  out.prices.push_back(std::move(price));
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
  Cheapest out{std::exchange(heads_, nullptr)};
  const auto rest = [&](size_t count) {
    return Nests(nests.begin() + static_cast<std::ptrdiff_t>(count), nests.end());
  };
  if (lower::is_over_parts(nests[0], program_.computed)) {
    Cover parts = as_parts(nests);
    const size_t count = parts.kernels[0].nests.size();
    consider(std::move(parts), rest(count), names, out);
  } else {
    if (auto rows = as_rows(nests, true)) {
      const size_t count = rows->kernels[0].nests.size();
      consider(std::move(*rows), rest(count), names, out);
    }
    // The combination of parts is one kernel: its line covers the whole statement.
    if (!reads_any(nests[0], parts_)) {
      in_steps(nests, names, out);
      in_parts(nests, names, out);
      in_pieces(nests, names, out);
    }
    if (auto elements = as_rows(nests, false)) {
      const size_t count = elements->kernels[0].nests.size();
      consider(std::move(*elements), rest(count), names, out);
    }
    for (size_t count = nests.size(); count > 1; --count) {
      auto columns = as_columns(nests, count, names);
      if (!columns) continue;
      consider(std::move(*columns), rest(count), names, out);
      break;
    }
    if (auto sorted = as_sort(nests)) {
      const size_t count = sorted->kernels[0].nests.size();
      consider(std::move(*sorted), rest(count), names, out);
    }
    if (auto scattered = as_scatter(nests)) consider(std::move(*scattered), rest(1), names, out);
    for (size_t count = points_end(nests); count > 0; --count)
      consider(as_points(nests, count, names, target_.limits.warp_threads), rest(count), names,
               out);
  }
  known_.emplace(key, out.cover);
  return std::move(out.cover);
}

void Coverer::consider(Cover cover, const Nests& rest, const lower::FreshNames& names,
                       Cheapest& cheapest) {
  if (cheapest.heads) cheapest.heads->push_back({cover, rest, names});
  if (cheapest.is_beaten(cover.cycles)) return;
  cover.append(best(rest, names));
  cheapest.take(std::move(cover));
}

// Whether the rows are those of a step of a reduction, whose results pass through memory.
bool Coverer::is_step(const lower::RowGroup& group) const {
  return !program_.buffers.contains(std::string(group.statements[0].target.str()));
}

// A row that a thread walks over in less time than a CTA takes to start, where it is the only one
// or where lanes do not share one (choose/rows/short_rows.h): not in a step.
bool Coverer::is_short_row(const lower::RowGroup& group) const {
  const expr::Expr columns = group.column.extent;
  const bool has_lanes = !is_step(group) && columns.op() == expr::Op::IntConst &&
                         may_be_short(group, static_cast<double>(columns.integer()));
  return !has_lanes && group.outer.empty() && columns.op() == expr::Op::IntConst &&
         columns.integer() < target_.rows.least_columns;
}

std::optional<Cover> Coverer::as_rows(const Nests& nests, bool has_reductions) {
  const auto group = has_reductions ? lower::row_group(nests, target_, context_.pool)
                                    : lower::element_group(nests, target_, context_.pool);
  if (!group || is_short_row(*group)) return std::nullopt;
  Cover out;
  out.kernels.push_back(kernel(Form::Rows, nests, group->nests));
  add([group = *group, kept = kept_behind(nests, group->nests),
       may_share = !is_step(*group)](const NestCosts& c) { return c.rows(group, kept, may_share); },
      out);
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

Cover Coverer::as_parts(const Nests& nests) {
  const size_t count = lower::part_nests_end(nests, 0, program_.computed, context_.pool);
  Cover out;
  out.kernels.push_back(kernel(Form::Parts, nests, count));
  add([kernel = NestCosts::Points{out.kernels[0].nests, kept_behind(nests, count)}](
          const NestCosts& c) { return c.points(kernel); },
      out);
  return out;
}

// The terms of a reduction that has one place for each of them. Neighbouring threads have
// neighbouring elements, which memory combines together: vectors of f32 sums, one for each thread
// (25 million terms of an embedding's gradient: 0.114 ms, 0.142 with two vectors). Of terms that go
// to a CTA's own copy first a thread has several (67108864 bytes in 256 slots: 0.129 ms, 0.079 with
// eight); others wait for memory anyway.
std::optional<Cover> Coverer::as_scatter(const Nests& nests) {
  auto scattered = lower::scatter_nests(nests[0], buffers_, context_.pool);
  if (!scattered) return std::nullopt;
  scattered->terms.axes = scatter_axes(scattered->terms, target_.nests, context_.pool);
  const std::set<std::string> kept = kept_behind(nests, 1);
  const auto& scatter = scattered->terms.body[0].as<scalar::Scatter>();
  const bool has_vectors =
      scatter.reducer == expr::Reducer::Sum && scatter.value.dtype() == expr::DType::F32 &&
      !scatter.indices.empty() &&
      scatter.indices.back() == context_.pool.index(scattered->terms.axes.back().name);
  const bool is_private =
      lower::may_be_own(buffers_.at(std::string(scatter.target.str())), target_);
  const bool has_several = is_private && has_many(scattered->terms.axes, target_);
  const int64_t in_vector = target_.memory.vector_bytes / expr::bytes(scatter.value.dtype());
  const int64_t each = has_vectors
                           ? std::min(in_vector, points_of_line({&scattered->terms, 1}, buffers_,
                                                                target_, context_.pool))
                       : has_several ? target_.points.line
                                     : 1;
  Cover out;
  out.kernels.push_back(kernel(Form::Scatter, nests, 1));
  out.kernels[0].lines.push_back(ir::make(decision::Lanes{1, {}}));
  out.kernels[0].lines.push_back(ir::make(decision::Each{each, {}}));
  // Many terms meet at few places.
  if (is_private)
    out.kernels[0].lines.push_back(ir::make(decision::Private{decision::Switch::On, {}, {}}));
  for (const MapNest* nest : {&scattered->first, &scattered->terms})
    add([kernel =
             NestCosts::Points{{*nest}, kept}](const NestCosts& c) { return c.points(kernel); },
        out);
  return out;
}

// A long reduction with few results, in parts (split_reduction.h); lowering makes the nests. A
// single result has as many parts as a CTA then reduces as one row. Several results have fewer, or
// as many as lanes combine just as fast.
void Coverer::in_parts(const Nests& nests, const lower::FreshNames& names, Cheapest& cheapest) {
  const target::Points& points = target_.points;
  if (nests[0].axes.empty()) return in_parts(nests, points.parts_of_one, names, cheapest);
  in_parts(nests, points.parts_of_many, names, cheapest);
  in_parts(nests, points.parts_of_many * points.part_lanes, names, cheapest);
}

void Coverer::in_parts(const Nests& nests, int64_t parts, const lower::FreshNames& names,
                       Cheapest& cheapest) {
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
  ir::TensorType counted = s->type;
  counted.dims[0] = context_.pool.integer(s->parts);
  costs_.declare(s->buffer, counted);
  Nests tail(nests.begin() + 1, nests.end());
  Nests two = {s->partial, s->final};
  two.insert(two.end(), tail.begin(), tail.end());
  // Neighbouring parts have neighbouring elements, so each part has a thread instead of lanes.
  where_ = {s->condition, true};
  Cover out = as_points(two, 1, own, 1);
  where_ = {};
  out.priced.emplace_back(s->buffer, counted);
  out.kernels[0].nests.clear();
  two.erase(two.begin());
  if (!is_for_all_sizes) {
    where_ = {s->condition, true};
    Cover all = as_points(two, 1, own, points.part_lanes);
    where_ = {s->condition, false};
    Cover whole = as_points(nests, 1, own, 1);
    where_ = {};
    all.kernels[0].nests = {nests[0]};
    all.kernels[0].lines.insert(all.kernels[0].lines.begin(), ir::make(line));
    all.kernels[0].others.emplace_back();  // without the parts of the line
    whole.kernels.clear();
    out.append(std::move(whole));
    out.append(std::move(all));
    consider(std::move(out), tail, own, cheapest);
    return;
  }
  // The kernel that combines the parts may have more nests; its first nest is this one again.
  if (cheapest.is_beaten(out.cycles)) return;
  Cover behind = best(two, own);
  if (behind.kernels.empty() || behind.kernels[0].nests.empty()) return;
  behind.kernels[0].nests[0] = nests[0];
  behind.kernels[0].lines.push_back(ir::make(line));
  out.append(std::move(behind));
  consider(std::move(out), {}, own, cheapest);
}

}  // namespace nautilus::choose
