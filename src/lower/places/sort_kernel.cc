// SPDX-License-Identifier: Apache-2.0
#include "lower/places/sort_kernel.h"

#include <fmt/format.h>

#include <bit>

#include "decision/choice.h"
#include "expr/scalar_ops.h"
#include "lower/points/point_parts.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

bool is_power(int64_t n) { return n > 0 && std::has_single_bit(static_cast<uint64_t>(n)); }

// The lines of one of the kernels.
class SortLines {
 public:
  SortLines(const ir::Block& alternative, const PointsContext& points, Expr count,
            ir::PassContext& context)
      : target_(points.target),
        context_(context.with(context.sink, decided_)),
        body_(decision::with_lines({}, alternative)),
        lanes_(context_),
        each_(context_),
        threads_(context_) {
    read_last_ = decision::take_read_last(body_);
    lanes_.begin(body_);
    each_.begin(body_);
    threads_.begin(body_);
    has_rules_ = points.rules != nullptr;
    if (has_rules_) shape_ = points.rules->sort(count);
    if (const auto* line = lanes_.asked()) shape_.lanes = line->count.value_or(0);
    if (const auto* line = each_.asked()) shape_.each = line->points.value_or(0);
    if (const auto* line = threads_.asked()) shape_.threads = line->count.value_or(0);
  }
  SortLines(const SortLines&) = delete;
  SortLines& operator=(const SortLines&) = delete;

  const SortShape& shape() const { return shape_; }

  // False if a line is refused or missing.
  // `before`: the most elements of those alternatives before this one.
  bool read(Expr count, int64_t before) {
    if (!decision::refuse_all(decision::lines(body_),
                              "kernels that put rows in order have no such line", context_))
      return false;
    if (!has_rules_ && !(lanes_.asked() && each_.asked() && threads_.asked())) {
      context_.sink.report(diag::Code::DecisionRefused, {},
                           "`kernel ... sort`: its lines `lanes`, `each` and `threads` are written "
                           "by choose_point_lines");
      return false;
    }
    const target::Limits& limits = target_.limits;
    const int64_t most_each = target_.points.sort_each;
    if (!is_power(shape_.lanes) || shape_.lanes < 2 || shape_.lanes > limits.cta_threads)
      return refuse(lanes_, fmt::format("a row has a power of two of lanes from 2 to {}",
                                        limits.cta_threads));
    if (!is_power(shape_.each) || shape_.each > most_each)
      return refuse(each_,
                    fmt::format("a lane has a power of two of elements up to {}", most_each));
    const int64_t elements = shape_.lanes * shape_.each;
    if (elements > target_.points.sort_row)
      return refuse(each_, fmt::format("rows of up to {} elements are put in order",
                                       target_.points.sort_row));
    if (elements <= before || (before > 0 && count.op() == EK::IntConst))
      return refuse(each_,
                    fmt::format("an alternative before it serves rows of {} elements", before));
    if (count.op() == EK::IntConst && count.integer() > elements)
      return refuse(each_, fmt::format("{} lanes have {} elements, a row has {}", shape_.lanes,
                                       elements, count.integer()));
    const bool is_warp = shape_.lanes <= limits.warp_threads;
    if (is_warp ? shape_.threads < 1 || shape_.threads > limits.cta_threads ||
                      shape_.threads % limits.warp_threads != 0
                : shape_.threads != shape_.lanes)
      return refuse(threads_, is_warp ? fmt::format("a CTA has a multiple of {} threads up to {}",
                                                    limits.warp_threads, limits.cta_threads)
                                      : "a CTA has the lanes of its row");
    return true;
  }

  bool end(const LoweredKernel& made, std::string_view name, const ir::Block& members,
           ir::PassContext& context) {
    lanes_.took({shape_.lanes, {}});
    each_.took({shape_.each, {}});
    threads_.took({shape_.threads, {}});
    if (!lanes_.end("") || !each_.end("") || !threads_.end("")) return false;
    ir::Block all = members;
    all.insert(all.end(), decided_.begin(), decided_.end());
    if (has_rules_) all.insert(all.end(), read_last_.begin(), read_last_.end());
    const auto& kernel = made.kernel.as<matile::Kernel>();
    decision::note_kernel(context.pool.name(name), decision::Form::Sort, all, kernel.name, context);
    return true;
  }

  void leave(LoweredKernel& made) const {
    if (has_rules_) return;
    auto kernel = made.kernel.as<matile::Kernel>();
    kernel.body = decision::with_lines(std::move(kernel.body), read_last_);
    made.kernel = ir::make(std::move(kernel));
  }

 private:
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
  ir::Block decided_;
  ir::PassContext context_;
  ir::Block body_;
  ir::Block read_last_;
  bool has_rules_ = false;
  SortShape shape_;
  decision::Choice<decision::Lanes> lanes_;
  decision::Choice<decision::Each> each_;
  decision::Choice<decision::Threads> threads_;
};

class SortLowering {
 public:
  SortLowering(const PointsContext& points, const SortNests& nests, expr::ExprPool& pool)
      : points_(points), nests_(nests), names_(points.names), pool_(pool) {
    for (const ir::Axis& a : nests.rows) names_.take(a.name.str());
    count_ = nests.order.axis.extent;
  }

  LoweredKernel run(const SortShape& shape) {
    matile::Sort order;
    order.axes = {nests_.order.axis};
    order.each = shape.each;
    order.first =
        nests_.order.is_largest_first ? matile::SortFirst::Largest : matile::SortFirst::Smallest;
    order.key = nests_.order.element;
    for (Expr c : nests_.order.has_place)
      order.condition = order.condition ? pool_.binary(EK::And, order.condition, c) : c;
    order.place = nests_.place.name();
    order.places = all_places();
    for (const PlaceChoice& c : nests_.choices)
      write(guard(c, order.places), choose(c), order.body);
    if (keeps_counts()) write(guard(count_, order.places), kept_count(order.condition), order.body);
    const std::string name = named_after(points_.nests, points_.kept) + "_kernel";
    LoweredKernel out = kernel_of_points(points_.names.make(name), nests_.rows, {ir::make(order)},
                                         shape.threads / shape.lanes, names_, pool_);
    auto kernel = out.kernel.as<matile::Kernel>();
    auto points = kernel.body[0].as<matile::Points>();
    points.lanes_per_point = shape.lanes;
    if (shape.threads != points_.target.points.threads) points.threads = shape.threads;
    kernel.body[0] = ir::make(std::move(points));
    out.kernel = ir::make(std::move(kernel));
    return out;
  }

 private:
  bool keeps_counts() const { return points_.kept.contains(std::string(nests_.counts.str())); }

  DType dtype(ir::Name tensor) const { return points_.buffers.at(std::string(tensor.str())).dtype; }

  Expr all_places() {
    Expr out;
    const auto add = [&](Expr n) { out = !out || out == n ? n : pool_.binary(EK::Max, out, n); };
    for (const PlaceChoice& c : nests_.choices)
      add(c.places ? c.places : pool_.binary(EK::Add, c.place, pool_.integer(1)));
    if (keeps_counts()) add(count_);
    return out;
  }

  // Whether a place is one of the choice's; null: all are.
  Expr guard(const PlaceChoice& c, Expr places) {
    return c.place ? pool_.binary(EK::Eq, nests_.place, c.place) : guard(c.places, places);
  }
  Expr guard(Expr limit, Expr places) {
    return limit == places ? Expr() : pool_.binary(EK::Lt, nests_.place, limit);
  }

  // What one term makes of what the reduction begins with, where there is an element to choose.
  ir::Op choose(const PlaceChoice& c) {
    const DType stored = dtype(c.target);
    const DType wide = expr::compute_dtype(stored);
    const Expr first = pool_.cast(wide, c.first);
    const Expr chosen = pool_.binary(expr::combiner(c.reducer), first, pool_.cast(wide, c.value));
    Expr is_chosen = c.condition;
    if (c.places != count_) {
      const Expr exists = pool_.binary(EK::Lt, nests_.place, count_);
      is_chosen = is_chosen ? pool_.binary(EK::And, exists, is_chosen) : exists;
    }
    const Expr value = is_chosen ? pool_.select(is_chosen, chosen, first) : chosen;
    return ir::make(matile::Write{c.target, c.indices, pool_.cast(stored, value)});
  }

  // Nothing is counted for elements without a place.
  ir::Op kept_count(Expr condition) {
    const DType stored = dtype(nests_.counts);
    const Expr place = pool_.cast(stored, nests_.place);
    ir::Exprs indices;
    for (const ir::Axis& a : points_.nests[0].axes) indices.push_back(pool_.index(a.name));
    return ir::make(matile::Write{
        nests_.counts, indices,
        condition ? pool_.select(condition, place, pool_.constant(0, stored)) : place});
  }

  // Neighbours under the same condition share it.
  static void write(Expr condition, ir::Op op, ir::Block& out) {
    if (!condition) return out.push_back(std::move(op));
    if (!out.empty() && out.back().is<matile::If>() &&
        out.back().as<matile::If>().condition == condition) {
      auto both = out.back().as<matile::If>();
      both.body.push_back(std::move(op));
      out.back() = ir::make(std::move(both));
      return;
    }
    out.push_back(ir::make(matile::If{condition, {std::move(op)}}));
  }

  const PointsContext& points_;
  const SortNests& nests_;
  FreshNames names_;
  expr::ExprPool& pool_;
  Expr count_;
};

// The kernel runs where the condition holds.
void launch_where(LoweredKernel& kernel, Expr condition, expr::ExprPool& pool) {
  const auto& launch = kernel.launch.as<matile::Launch>();
  kernel.launch =
      ir::make(matile::Launch{launch.kernel, pool.select(condition, launch.grid, pool.integer(0))});
}

}  // namespace

std::string refuse_sort(const SortNests& nests, const std::set<std::string>& kept) {
  const bool is_kept = kept.contains(std::string(nests.counts.str()));
  if (is_kept && !nests.order.counts.empty())
    return "elements that are not counted have a count that is read";
  return !is_kept && nests.choices.empty() ? "nothing chooses by the count" : "";
}

std::optional<SortKernels> sort_kernels(const PointsContext& points, const SortNests& nests,
                                        std::span<const ir::Block> alternatives,
                                        const ir::Block& members, ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  const Expr count = nests.order.axis.extent;
  const std::string name = named_after(points.nests, points.kept);
  SortKernels out;
  Expr is_longer;  // than those before have elements
  int64_t before = 0;
  for (const ir::Block& alternative : alternatives) {
    SortLines lines(alternative, points, count, context);
    if (!lines.read(count, before)) return std::nullopt;
    before = lines.shape().lanes * lines.shape().each;
    LoweredKernel made = SortLowering(points, nests, pool).run(lines.shape());
    if (!lines.end(made, name, out.kernels.empty() ? members : ir::Block(), context))
      return std::nullopt;
    lines.leave(made);
    const Expr most = pool.integer(before);
    if (is_longer) launch_where(made, is_longer, pool);
    const bool is_for_all = count.op() == EK::IntConst;
    if (!is_for_all) launch_where(made, pool.binary(EK::Le, count, most), pool);
    is_longer = is_for_all ? Expr() : pool.binary(EK::Gt, count, most);
    out.kernels.push_back(std::move(made));
  }
  out.is_longer = is_longer;
  return out;
}

void launch_for_longer(LoweredKernel& kernel, Expr is_longer, expr::ExprPool& pool) {
  launch_where(kernel, is_longer, pool);
}

}  // namespace nautilus::lower
