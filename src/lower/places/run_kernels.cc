// SPDX-License-Identifier: Apache-2.0
#include "lower/places/run_kernels.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/places/place_writes.h"
#include "lower/points/point_parts.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

// As it is stored: the compute dtype of an element often has more bits than the element.
DType stored_dtype(Expr element) {
  const bool is_wider = element.op() == EK::Cast && expr::is_float(element.dtype()) &&
                        (element[0].dtype() == DType::BF16 || element[0].dtype() == DType::F16);
  return is_wider ? element[0].dtype() : element.dtype();
}

class RunLowering {
 public:
  RunLowering(const PointsContext& points, const SortNests& nests, const RunShape& shape,
              expr::ExprPool& pool)
      : points_(points),
        nests_(nests),
        shape_(shape),
        names_(points.names),
        pool_(pool),
        stem_(named_after(points.nests, points.kept)),
        count_(nests.order.axis.extent),
        run_(shape.sort.lanes * shape.sort.each),
        kept_(kept_of_run(nests, points.kept, run_, pool)),
        pairs_(shape.merge.pairs.value_or(0)),
        has_place_(has_place(nests, pool)) {
    for (const ir::Axis& a : nests.rows) names_.take(a.name.str());
    names_.take(nests.order.axis.name.str());
    sorted_ = points.names.make(stem_ + "_sorted");
    index_ = points.names.make(stem_ + "_index");
    of_run_ = pool.index(names_.make("run"));
  }

  SortKernel run(Expr is_longer) {
    plan_ = run_plan({points_, nests_, stem_, run_, pairs_}, is_longer, pool_);
    std::vector<LoweredKernel> front = {sorting()};
    front[0].plan = std::move(plan_.scalars);
    for (ir::Op& op : tensors()) front[0].plan.push_back(std::move(op));
    for (int64_t step = 0; step < pairs_; ++step) front.push_back(merging_pairs(step));
    return {std::move(front), merging_all(), {}};
  }

 private:
  Expr number(int64_t n) { return pool_.integer(n); }
  Expr binary(EK op, Expr a, Expr b) { return pool_.binary(op, a, b); }
  Expr times(Expr a, Expr b) { return binary(EK::Mul, a, b); }
  Expr plus(Expr a, Expr b) { return binary(EK::Add, a, b); }
  Expr both(Expr a, Expr b) { return !a ? b : !b ? a : binary(EK::And, a, b); }

  ir::Block tensors() {
    ir::TensorType type{stored_dtype(nests_.order.element), {}};
    if (pairs_ > 0) type.dims.push_back(number(2));
    for (const ir::Axis& a : nests_.rows) type.dims.push_back(a.extent);
    type.dims.push_back(times(plan_.runs, number(kept_)));
    ir::Block out = {ir::make(matile::Tensor{sorted_, type, matile::TensorRole::Temp})};
    type.dtype = DType::I32;
    out.push_back(ir::make(matile::Tensor{index_, type, matile::TensorRole::Temp}));
    return out;
  }

  // An element in the tensors that pass from one kernel to the next.
  ir::Exprs at(Expr half, Expr element) {
    ir::Exprs out;
    if (pairs_ > 0) out.push_back(half);
    for (const ir::Axis& a : nests_.rows) out.push_back(pool_.index(a.name));
    out.push_back(element);
    return out;
  }

  LoweredKernel sorting() {
    const Expr own = nests_.order.index;
    const Expr of_row = plus(times(of_run_, number(run_)), own);
    // Behind the row its last element is read, so that no load waits for a comparison.
    const Expr exists = is_whole() ? Expr() : binary(EK::Lt, of_row, count_);
    const Expr last = binary(EK::Sub, count_, number(1));
    const bool is_read_always = exists && !plan_.has_empty;
    const expr::Substitution here = {
        {own, is_read_always ? binary(EK::Min, of_row, last) : of_row}};
    const Expr element = expr::substitute(pool_, nests_.order.element, here);
    const Expr has = has_place_ ? expr::substitute(pool_, has_place_, here) : Expr();
    const Expr condition = is_read_always ? both(has, exists) : both(exists, has);
    matile::Sort order;
    order.axes = {{nests_.order.axis.name, number(run_)}};
    order.each = shape_.sort.each;
    order.first =
        nests_.order.is_largest_first ? matile::SortFirst::Largest : matile::SortFirst::Smallest;
    order.key = element;
    order.condition = condition;
    order.place = nests_.place.name();
    order.places = number(kept_);
    const DType stored = stored_dtype(element);
    const Expr value =
        condition ? pool_.select(condition, element, behind_all(element.dtype())) : element;
    Expr index = pool_.cast(DType::I32, of_row);
    // Below 0 for elements that have no place.
    if (marks_indices())
      index =
          pool_.select(condition, index, binary(EK::Sub, pool_.constant(-1, DType::I32), index));
    const ir::Exprs to = at(number(0), plus(times(of_run_, number(kept_)), nests_.place));
    order.body.push_back(ir::make(matile::Write{sorted_, to, pool_.cast(stored, value)}));
    order.body.push_back(ir::make(matile::Write{index_, to, index}));
    ir::Axes axes = nests_.rows;
    axes.push_back({of_run_.name(), plan_.runs});
    LoweredKernel out =
        kernel_of_points(points_.names.make(stem_ + "_run_kernel"), axes, {ir::make(order)},
                         shape_.sort.threads / shape_.sort.lanes, names_, pool_);
    set_lanes(out, shape_.sort.lanes);
    set_threads(out, shape_.sort.threads, points_.target);
    return out;
  }

  // Whether the row fills its runs.
  bool is_whole() const { return count_.op() == EK::IntConst && count_.integer() % run_ == 0; }

  bool marks_indices() const { return has_place_ || !is_whole(); }

  // What is stored of elements that have no place.
  Expr behind_all(DType dtype) {
    if (expr::is_float(dtype)) {
      const double last = std::numeric_limits<double>::infinity();
      return pool_.constant(nests_.order.is_largest_first ? -last : last, dtype);
    }
    const bool is_long = expr::bytes(dtype) == 8;
    using Long = std::numeric_limits<int64_t>;
    using Word = std::numeric_limits<int32_t>;
    return nests_.order.is_largest_first
               ? pool_.integer(is_long ? Long::min() : Word::min(), dtype)
               : pool_.integer(is_long ? Long::max() : Word::max(), dtype);
  }

  Expr stored_at(Expr half, Expr element) {
    const Expr read = pool_.read(sorted_, stored_dtype(nests_.order.element), at(half, element));
    return pool_.cast(nests_.order.element.dtype(), read);
  }
  Expr index_at(Expr half, Expr element) {
    return pool_.read(index_, DType::I32, at(half, element));
  }
  // Whether an element of a run has a place; null: all have.
  Expr has_place_at(Expr half, Expr element) {
    if (!marks_indices()) return {};
    return binary(EK::Ge, index_at(half, element), pool_.constant(0, DType::I32));
  }

  // One element of a thread.
  struct Own {
    Expr at;         // in its row
    Expr element;    // what it is compared by
    Expr has_place;  // that it has one; null: all have
    Expr is_last;    // that it is equal to what is stored of those that have none
    Expr ahead;      // elements before it
  };

  Expr let(std::string_view stem, Expr value, ir::Block& body) {
    const ir::Name name = names_.make(stem);
    body.push_back(ir::make(matile::Let{name, value}));
    return pool_.var(name, value.dtype());
  }

  // A thread's neighbours of a run, each behind so many: those before it in the run, and `more`.
  std::vector<Own> take_own(const Runs& runs, Expr first, Expr run, Expr more, ir::Block& body) {
    std::vector<Own> out;
    for (int64_t k = 0; k < *shape_.merge.each; ++k) {
      Own own;
      own.at = k == 0 ? first : plus(first, number(k));
      own.element = let("element", stored_at(runs.half, own.at), body);
      if (const Expr has = has_place_at(runs.half, own.at)) {
        own.has_place = let("has_place", has, body);
        own.is_last =
            let("is_last", binary(EK::Eq, own.element, behind_all(own.element.dtype())), body);
      }
      Expr before = binary(EK::Sub, own.at, times(run, runs.length));
      if (more) before = plus(before, more);
      const ir::Name ahead = names_.make("ahead");
      body.push_back(ir::make(matile::Value{ahead, DType::I64, before}));
      own.ahead = pool_.index(ahead);
      out.push_back(own);
    }
    return out;
  }

  // Counts how many elements of another run come before each of the thread's, which are in order
  // themselves: each search begins where the last one ended.
  ir::Block look(const Runs& runs, Expr run, Expr other, const std::vector<Own>& all) {
    ir::Block out;
    const Expr is_ahead = let("is_ahead", binary(EK::Lt, other, run), out);
    const Expr begin = let("begin", times(other, runs.length), out);
    Expr there = runs.length;
    if (pairs_ > 0) {
      const Expr left = binary(EK::Sub, times(plan_.runs, number(kept_)), begin);
      there = let("there", binary(EK::Max, binary(EK::Min, there, left), number(0)), out);
    }
    Expr from;
    for (const Own& own : all) {
      const Expr before = pool_.index(names_.make("before"));
      out.push_back(
          ir::make(matile::Search{{{before.name(), there}},
                                  from,
                                  comes_before(runs.half, plus(begin, before), own, is_ahead)}));
      out.push_back(ir::make(matile::Assign{own.ahead.name(), plus(own.ahead, before)}));
      from = before;
    }
    return out;
  }

  // Whether an element of another run comes before the thread's: of equal ones those of runs ahead.
  // Elements without a place are stored as the last number, and come behind those that have one.
  Expr comes_before(Expr half, Expr at_other, const Own& own, Expr is_ahead) {
    const Expr element = stored_at(half, at_other);
    const Expr is_first =
        binary(nests_.order.is_largest_first ? EK::Gt : EK::Lt, element, own.element);
    const Expr there = has_place_at(half, at_other);
    const Expr among_equal = there ? pool_.select(own.is_last,
                                                  pool_.select(own.has_place, both(is_ahead, there),
                                                               binary(EK::Or, is_ahead, there)),
                                                  is_ahead)
                                   : is_ahead;
    return binary(EK::Or, is_first, both(binary(EK::Eq, element, own.element), among_equal));
  }

  // The first element of a thread.
  Expr first_of(Expr thread) {
    const int64_t each = *shape_.merge.each;
    return each == 1 ? thread : times(thread, number(each));
  }

  LoweredKernel merging(std::string_view name, Expr thread, ir::Block body) {
    ir::Axes axes = nests_.rows;
    axes.push_back({thread.name(), times(plan_.runs, number(kept_ / *shape_.merge.each))});
    LoweredKernel out = kernel_of_points(points_.names.make(stem_ + std::string(name)), axes,
                                         std::move(body), *shape_.merge.threads, names_, pool_);
    set_threads(out, *shape_.merge.threads, points_.target);
    return out;
  }

  // Each two neighbouring runs become one, in the other half of the tensors.
  LoweredKernel merging_pairs(int64_t step) {
    const Runs runs{number(kept_ << step), {}, number(step % 2)};
    const Expr to = number((step + 1) % 2);
    const Expr thread = pool_.index(names_.make("at"));
    const Expr first = first_of(thread);
    ir::Block body;
    const Expr run = let("run", binary(EK::FloorDiv, first, runs.length), body);
    const Expr is_second = binary(EK::Mod, run, number(2));
    const Expr other =
        let("other", binary(EK::Sub, plus(run, number(1)), times(is_second, number(2))), body);
    const Expr begin = let("pair", times(binary(EK::Sub, run, is_second), runs.length), body);
    const std::vector<Own> all = take_own(runs, first, run, begin, body);
    for (ir::Op& op : look(runs, run, other, all)) body.push_back(std::move(op));
    for (const Own& own : all) {
      const ir::Exprs place = at(to, own.ahead);
      const DType stored = stored_dtype(nests_.order.element);
      body.push_back(ir::make(matile::Write{sorted_, place, pool_.cast(stored, own.element)}));
      body.push_back(ir::make(matile::Write{index_, place, index_at(runs.half, own.at)}));
    }
    LoweredKernel out = merging("_pairs_kernel", thread, std::move(body));
    if (plan_.runs.op() != EK::IntConst)
      launch_where(out, are_pairs_merged(plan_.runs, step, pool_), pool_);
    return out;
  }

  // The runs that are left become the row.
  LoweredKernel merging_all() {
    const Expr thread = pool_.index(names_.make("at"));
    const Expr first = first_of(thread);
    ir::Block body;
    const Expr run = let("run", binary(EK::FloorDiv, first, plan_.last.length), body);
    const std::vector<Own> all = take_own(plan_.last, first, run, {}, body);
    const Expr other = pool_.index(names_.make("other"));
    ir::Block of_run = {
        ir::make(matile::If{binary(EK::Ne, other, run), look(plan_.last, run, other, all)})};
    body.push_back(ir::make(matile::Loop{.var = other.name(),
                                         .from = number(0),
                                         .direction = matile::Direction::Up,
                                         .to = plan_.last.count,
                                         .body = std::move(of_run)}));
    const Expr places = places_asked(nests_, points_.kept, pool_);
    for (const Own& own : all)
      body.push_back(ir::make(matile::If{binary(EK::Lt, own.ahead, places), results(own)}));
    return merging("_kernel", thread, std::move(body));
  }

  // Of the element at its place, under the names of the nests.
  ir::Block results(const Own& own) {
    ir::Block out;
    out.push_back(ir::make(matile::Let{nests_.place.name(), own.ahead}));
    Expr index = index_at(plan_.last.half, own.at);
    if (marks_indices())
      index = binary(EK::Max, index, binary(EK::Sub, pool_.constant(-1, DType::I32), index));
    out.push_back(ir::make(matile::Let{nests_.order.axis.name, pool_.cast(DType::I64, index)}));
    for (ir::Op& op : place_writes(points_, nests_, pool_)) out.push_back(std::move(op));
    return out;
  }

  const PointsContext& points_;
  const SortNests& nests_;
  const RunShape& shape_;
  FreshNames names_;
  expr::ExprPool& pool_;
  std::string stem_;
  Expr count_;     // elements of a row
  int64_t run_;    // elements of a run that lanes put in order
  int64_t kept_;   // of them, those that the kernels pass on
  int64_t pairs_;  // kernels that merge pairs of runs
  Expr has_place_;
  ir::Name sorted_;
  ir::Name index_;
  Expr of_run_;  // the run of a point
  RunPlan plan_;
};

}  // namespace

SortKernel run_kernels(const PointsContext& points, const SortNests& nests, const RunShape& shape,
                       Expr is_longer, expr::ExprPool& pool) {
  return RunLowering(points, nests, shape, pool).run(is_longer);
}

}  // namespace nautilus::lower
