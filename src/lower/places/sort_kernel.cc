// SPDX-License-Identifier: Apache-2.0
#include "lower/places/sort_kernel.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "decision/choice.h"
#include "lower/places/place_writes.h"
#include "lower/places/run_kernels.h"
#include "lower/points/point_parts.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

bool is_power(int64_t n) { return n > 0 && std::has_single_bit(static_cast<uint64_t>(n)); }

// What an alternative is for.
struct SortedRows {
  Expr count;           // elements of a row
  int64_t before = 0;   // the most of those alternatives before this one
  bool is_last = true;  // of the alternatives
  int64_t kept(int64_t run) const { return kept_of_run(nests, kept_results, run, pool); }

  const SortNests& nests;
  const std::set<std::string>& kept_results;
  expr::ExprPool& pool;
};

// The lines of one of the kernels.
class SortLines {
 public:
  SortLines(const ir::Block& alternative, const PointsContext& points, const SortedRows& rows,
            ir::PassContext& context)
      : target_(points.target),
        rules_(points.rules),
        rows_(rows),
        context_(context.with(context.sink, decided_)),
        body_(decision::with_lines({}, alternative)),
        lanes_(context_),
        each_(context_),
        threads_(context_),
        merge_(context_) {
    read_last_ = decision::take_read_last(body_);
    lanes_.begin(body_);
    each_.begin(body_);
    threads_.begin(body_);
    merge_.begin(body_);
    if (rules_) shape_ = rules_->sort(rows.count);
    if (const auto* line = lanes_.asked()) shape_.lanes = line->count.value_or(0);
    if (const auto* line = each_.asked()) shape_.each = line->points.value_or(0);
    if (const auto* line = threads_.asked()) shape_.threads = line->count.value_or(0);
  }
  SortLines(const SortLines&) = delete;
  SortLines& operator=(const SortLines&) = delete;

  const SortShape& shape() const { return shape_; }
  const std::optional<decision::Merge>& merge() const { return shape_of_merge_; }
  ir::Block read_last() const { return rules_ ? ir::Block() : read_last_; }

  // False if a line is refused or missing.
  bool read() {
    if (!decision::refuse_all(decision::lines(body_),
                              "kernels that put rows in order have no such line", context_))
      return false;
    if (!rules_ && !(lanes_.asked() && each_.asked() && threads_.asked()))
      return report("its lines `lanes`, `each` and `threads` are written by choose_point_lines");
    const target::Limits& limits = target_.limits;
    const int64_t most_each = target_.points.sort_each;
    if (!is_power(shape_.lanes) || shape_.lanes < 2 || shape_.lanes > limits.cta_threads)
      return refuse(lanes_, fmt::format("a row has a power of two of lanes from 2 to {}",
                                        limits.cta_threads));
    if (!is_power(shape_.each) || shape_.each > most_each)
      return refuse(each_,
                    fmt::format("a lane has a power of two of elements up to {}", most_each));
    if (elements() > target_.points.sort_row)
      return refuse(each_, fmt::format("up to {} elements are put in order at once",
                                       target_.points.sort_row));
    const bool is_warp = shape_.lanes <= limits.warp_threads;
    if (is_warp ? shape_.threads < 1 || shape_.threads > limits.cta_threads ||
                      shape_.threads % limits.warp_threads != 0
                : shape_.threads != shape_.lanes)
      return refuse(threads_, is_warp ? fmt::format("a CTA has a multiple of {} threads up to {}",
                                                    limits.warp_threads, limits.cta_threads)
                                      : "a CTA has the lanes of its row");
    return read_merge();
  }

  bool end(const LoweredKernel& made, std::string_view name, const ir::Block& members,
           ir::PassContext& context) {
    lanes_.took({shape_.lanes, {}});
    each_.took({shape_.each, {}});
    threads_.took({shape_.threads, {}});
    if (shape_of_merge_) merge_.took(*shape_of_merge_);
    if (!lanes_.end("") || !each_.end("") || !threads_.end("") || !merge_.end("")) return false;
    ir::Block all = members;
    all.insert(all.end(), decided_.begin(), decided_.end());
    if (rules_) all.insert(all.end(), read_last_.begin(), read_last_.end());
    const auto& kernel = made.kernel.as<matile::Kernel>();
    decision::note_kernel(context.pool.name(name), decision::Form::Sort, all, kernel.name, context);
    return true;
  }

  void leave(LoweredKernel& made) const {
    if (rules_) return;
    auto kernel = made.kernel.as<matile::Kernel>();
    kernel.body = decision::with_lines(std::move(kernel.body), read_last_);
    made.kernel = ir::make(std::move(kernel));
  }

 private:
  int64_t elements() const { return shape_.lanes * shape_.each; }

  // Whether there are rows for the kernel, and whether it needs runs for them.
  bool read_merge() {
    const bool is_known = rows_.count.op() == EK::IntConst;
    if (rows_.before > 0 && (is_known || (!merge_.asked() && elements() <= rows_.before)))
      return refuse(
          each_, fmt::format("an alternative before it serves rows of {} elements", rows_.before));
    const bool has_longer = is_known ? rows_.count.integer() > elements() : rows_.is_last;
    if (!has_longer) {
      if (!merge_.asked()) return true;
      return refuse(merge_,
                    is_known ? "a row is one run"
                             : "it serves rows of any length, so that it is the last alternative");
    }
    if (!merge_.asked() && !rules_) {
      if (!is_known)
        return report("its last alternative serves rows of any length by a line `merge`");
      return refuse(each_, fmt::format("{} lanes have {} elements, a row has {}; a line `merge` "
                                       "makes runs of it",
                                       shape_.lanes, elements(), rows_.count.integer()));
    }
    const int64_t kept = rows_.kept(elements());
    const decision::Merge line = merge_.asked() ? *merge_.asked() : rules_->merge(kept);
    const int64_t each = line.each.value_or(0);
    const int64_t threads = line.threads.value_or(0);
    const int64_t most = std::min(kept, target_.points.sort_each);
    const target::Limits& limits = target_.limits;
    if (!is_power(each) || each > most)
      return refuse(merge_, fmt::format("a thread has a power of two of elements up to {}", most));
    if (threads < 1 || threads % limits.warp_threads != 0 || threads > limits.cta_threads)
      return refuse(merge_, fmt::format("a CTA has a multiple of {} threads up to {}",
                                        limits.warp_threads, limits.cta_threads));
    return read_pairs(line);
  }

  // Pairs of runs are merged as long as more than one run is left.
  bool read_pairs(const decision::Merge& line) {
    const int64_t pairs = line.pairs.value_or(0);
    const bool is_known = rows_.count.op() == EK::IntConst;
    const int64_t longest = is_known ? rows_.count.integer() : std::numeric_limits<int32_t>::max();
    int64_t most = 0;
    while (rows_.kept(elements()) == elements() && longest > elements() << (most + 1)) ++most;
    if (pairs < 0 || pairs > most)
      return refuse(merge_, most == 0
                                ? "of these runs all are merged at once"
                                : fmt::format("up to {} kernels merge pairs of these runs", most));
    shape_of_merge_ = line;
    return true;
  }

  bool report(std::string_view what) {
    context_.sink.report(diag::Code::DecisionRefused, {},
                         fmt::format("`kernel ... sort`: {}", what));
    return false;
  }

  // The line that says so; where it says nothing wrong alone, the rules' answers do not fit
  // another.
  template <class D>
  bool refuse(decision::Choice<D>& choice, const std::string& why) {
    choice.refuse(why);
    lanes_.refuse(why);
    each_.refuse(why);
    threads_.refuse(why);
    return false;
  }

  const target::Target& target_;
  PointAnswers* rules_;
  const SortedRows& rows_;
  ir::Block decided_;
  ir::PassContext context_;
  ir::Block body_;
  ir::Block read_last_;
  SortShape shape_;
  std::optional<decision::Merge> shape_of_merge_;
  decision::Choice<decision::Lanes> lanes_;
  decision::Choice<decision::Each> each_;
  decision::Choice<decision::Threads> threads_;
  decision::Choice<decision::Merge> merge_;
};

LoweredKernel sort_kernel(const PointsContext& points, const SortNests& nests,
                          const SortShape& shape, expr::ExprPool& pool) {
  FreshNames names = points.names;
  for (const ir::Axis& a : nests.rows) names.take(a.name.str());
  matile::Sort order;
  order.axes = {nests.order.axis};
  order.each = shape.each;
  order.first =
      nests.order.is_largest_first ? matile::SortFirst::Largest : matile::SortFirst::Smallest;
  order.key = nests.order.element;
  order.condition = has_place(nests, pool);
  order.place = nests.place.name();
  order.places = places_asked(nests, points.kept, pool);
  order.body = place_writes(points, nests, pool);
  const std::string name = named_after(points.nests, points.kept) + "_kernel";
  LoweredKernel out = kernel_of_points(points.names.make(name), nests.rows, {ir::make(order)},
                                       shape.threads / shape.lanes, names, pool);
  set_lanes(out, shape.lanes);
  set_threads(out, shape.threads, points.target);
  return out;
}

}  // namespace

std::string refuse_sort(const SortNests& nests, const std::set<std::string>& kept) {
  const bool is_kept = keeps_counts(nests, kept);
  if (is_kept && !nests.order.counts.empty())
    return "elements that are not counted have a count that is read";
  return !is_kept && nests.choices.empty() ? "nothing chooses by the count" : "";
}

std::optional<std::vector<SortKernel>> sort_kernels(const PointsContext& points,
                                                    const SortNests& nests,
                                                    std::span<const ir::Block> alternatives,
                                                    const ir::Block& members,
                                                    ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  const Expr count = nests.order.axis.extent;
  const std::string name = named_after(points.nests, points.kept);
  std::vector<SortKernel> out;
  Expr is_longer;  // than those before have elements
  int64_t before = 0;
  for (const ir::Block& alternative : alternatives) {
    const bool is_last = &alternative == &alternatives.back();
    const SortedRows rows{count, before, is_last, nests, points.kept, pool};
    SortLines lines(alternative, points, rows, context);
    if (!lines.read()) return std::nullopt;
    before = lines.shape().lanes * lines.shape().each;
    SortKernel made =
        lines.merge() ? run_kernels(points, nests, {lines.shape(), *lines.merge()}, is_longer, pool)
                      : SortKernel{{}, sort_kernel(points, nests, lines.shape(), pool), {}};
    if (!lines.merge() && count.op() != EK::IntConst) {
      if (is_longer) launch_where(made.kernel, is_longer, pool);
      launch_where(made.kernel, pool.binary(EK::Le, count, pool.integer(before)), pool);
      is_longer = pool.binary(EK::Gt, count, pool.integer(before));
    }
    if (!lines.end(made.kernel, name, out.empty() ? members : ir::Block(), context))
      return std::nullopt;
    lines.leave(made.kernel);
    made.read_last = lines.read_last();
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace nautilus::lower
