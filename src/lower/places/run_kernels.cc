// SPDX-License-Identifier: Apache-2.0
#include "lower/places/run_kernels.h"

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
        has_place_(has_place(nests, pool)) {
    for (const ir::Axis& a : nests.rows) names_.take(a.name.str());
    names_.take(nests.order.axis.name.str());
    sorted_ = points.names.make(stem_ + "_sorted");
    index_ = points.names.make(stem_ + "_index");
    of_run_ = pool.index(names_.make("run"));
  }

  SortKernel run(Expr is_longer) {
    ir::Block plan = make_runs(is_longer);
    LoweredKernel front = sorting();
    front.plan = std::move(plan);
    return {std::move(front), merging(), {}};
  }

 private:
  Expr number(int64_t n) { return pool_.integer(n); }
  Expr binary(EK op, Expr a, Expr b) { return pool_.binary(op, a, b); }
  Expr both(Expr a, Expr b) { return !a ? b : !b ? a : binary(EK::And, a, b); }

  // A place that is data is at most the one behind the row.
  Expr most_places(const PlaceChoice& c) {
    if (c.places) return c.places;
    const bool is_known = c.place.op() == EK::IntConst;
    return binary(EK::Add, is_known ? c.place : count_, number(1));
  }

  // As many runs as hold the row, and as many elements as places are asked for.
  ir::Block make_runs(Expr is_longer) {
    ir::Block plan;
    Expr all = count_;
    if (kept_ == run_) {
      for (const PlaceChoice& c : nests_.choices) {
        const Expr places = most_places(c);
        if (places == count_) continue;
        all = binary(EK::Max, all, places);
        has_empty_runs_ = true;
      }
    }
    runs_ = binary(EK::FloorDiv, binary(EK::Add, all, number(run_ - 1)), number(run_));
    if (all.op() == EK::IntConst) {
      runs_ = number((all.integer() + run_ - 1) / run_);
    } else {
      const ir::Name name = points_.names.make(stem_ + "_runs");
      plan.push_back(ir::make(
          matile::Let{name, is_longer ? pool_.select(is_longer, runs_, number(0)) : runs_}));
      runs_ = pool_.index(name);
    }
    ir::TensorType type{stored_dtype(nests_.order.element), {}};
    for (const ir::Axis& a : nests_.rows) type.dims.push_back(a.extent);
    type.dims.push_back(runs_);
    type.dims.push_back(number(kept_));
    plan.push_back(ir::make(matile::Tensor{sorted_, type, matile::TensorRole::Temp}));
    type.dtype = DType::I32;
    plan.push_back(ir::make(matile::Tensor{index_, type, matile::TensorRole::Temp}));
    return plan;
  }

  // Of an element of a run, in the tensors that pass from one kernel to the other.
  ir::Exprs at(Expr run, Expr place) {
    ir::Exprs out;
    for (const ir::Axis& a : nests_.rows) out.push_back(pool_.index(a.name));
    out.push_back(run);
    out.push_back(place);
    return out;
  }

  ir::Axes axes_of_runs() const {
    ir::Axes out = nests_.rows;
    out.push_back({of_run_.name(), runs_});
    return out;
  }

  LoweredKernel sorting() {
    const Expr own = nests_.order.index;
    const Expr of_row = binary(EK::Add, binary(EK::Mul, of_run_, number(run_)), own);
    // Behind the row its last element is read, so that no load waits for a comparison.
    const Expr exists = is_whole() ? Expr() : binary(EK::Lt, of_row, count_);
    const Expr last = binary(EK::Sub, count_, number(1));
    const bool is_read_always = exists && !has_empty_runs_;
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
    order.body.push_back(
        ir::make(matile::Write{sorted_, at(of_run_, nests_.place), pool_.cast(stored, value)}));
    order.body.push_back(ir::make(matile::Write{index_, at(of_run_, nests_.place), index}));
    LoweredKernel out =
        kernel_of_points(points_.names.make(stem_ + "_run_kernel"), axes_of_runs(),
                         {ir::make(order)}, shape_.sort.threads / shape_.sort.lanes, names_, pool_);
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

  Expr stored_at(Expr run, Expr place) {
    const Expr read = pool_.read(sorted_, stored_dtype(nests_.order.element), at(run, place));
    return pool_.cast(nests_.order.element.dtype(), read);
  }
  Expr index_at(Expr run, Expr place) { return pool_.read(index_, DType::I32, at(run, place)); }
  // Whether an element of a run has a place; null: all have.
  Expr has_place_at(Expr run, Expr place) {
    if (!marks_indices()) return {};
    return binary(EK::Ge, index_at(run, place), pool_.constant(0, DType::I32));
  }

  // One element of a thread.
  struct Own {
    Expr at;         // its place in its run
    Expr element;    // what it is compared by
    Expr has_place;  // that it has one; null: all have
    Expr is_last;    // that it is equal to what is stored of those that have none
    Expr ahead;      // elements before it
  };

  LoweredKernel merging() {
    const int64_t each = *shape_.merge.each;
    const Expr thread = pool_.index(names_.make("at"));
    const Expr first = each == 1 ? thread : binary(EK::Mul, thread, number(each));
    ir::Block body;
    std::vector<Own> all;
    for (int64_t k = 0; k < each; ++k)
      all.push_back(take_own(k == 0 ? first : binary(EK::Add, first, number(k)), body));
    const Expr other = pool_.index(names_.make("other"));
    ir::Block of_run = {ir::make(matile::If{binary(EK::Ne, other, of_run_), look(other, all)})};
    body.push_back(ir::make(matile::Loop{.var = other.name(),
                                         .from = number(0),
                                         .direction = matile::Direction::Up,
                                         .to = runs_,
                                         .body = std::move(of_run)}));
    const Expr places = places_asked(nests_, points_.kept, pool_);
    for (const Own& own : all)
      body.push_back(ir::make(matile::If{binary(EK::Lt, own.ahead, places), results(own)}));
    ir::Axes axes = axes_of_runs();
    axes.push_back({thread.name(), number(kept_ / each)});
    LoweredKernel out = kernel_of_points(points_.names.make(stem_ + "_kernel"), axes,
                                         std::move(body), *shape_.merge.threads, names_, pool_);
    set_threads(out, *shape_.merge.threads, points_.target);
    return out;
  }

  Own take_own(Expr place, ir::Block& body) {
    const auto let = [&](std::string_view stem, Expr value) {
      const ir::Name name = names_.make(stem);
      body.push_back(ir::make(matile::Let{name, value}));
      return pool_.var(name, value.dtype());
    };
    Own own;
    own.at = place;
    own.element = let("element", stored_at(of_run_, place));
    if (const Expr has = has_place_at(of_run_, place)) {
      own.has_place = let("has_place", has);
      own.is_last = let("is_last", binary(EK::Eq, own.element, behind_all(own.element.dtype())));
    }
    const ir::Name ahead = names_.make("ahead");
    body.push_back(ir::make(matile::Value{ahead, DType::I64, place}));
    own.ahead = pool_.index(ahead);
    return own;
  }

  // Counts how many elements of another run come before each of the thread's, which are in order
  // themselves: each search begins where the last one ended.
  ir::Block look(Expr other, const std::vector<Own>& all) {
    ir::Block out;
    const ir::Name is_ahead = names_.make("is_ahead");
    out.push_back(ir::make(matile::Let{is_ahead, binary(EK::Lt, other, of_run_)}));
    Expr from;
    for (const Own& own : all) {
      const Expr before = pool_.index(names_.make("before"));
      out.push_back(ir::make(
          matile::Search{{{before.name(), number(kept_)}},
                         from,
                         comes_before(other, before, own, pool_.var(is_ahead, DType::Bool))}));
      out.push_back(ir::make(matile::Assign{own.ahead.name(), binary(EK::Add, own.ahead, before)}));
      from = before;
    }
    return out;
  }

  // Whether an element of another run comes before the thread's: of equal ones those of runs ahead.
  // Elements without a place are stored as the last number, and come behind those that have one.
  Expr comes_before(Expr other, Expr place, const Own& own, Expr is_ahead) {
    const Expr element = stored_at(other, place);
    const Expr is_first =
        binary(nests_.order.is_largest_first ? EK::Gt : EK::Lt, element, own.element);
    const Expr there = has_place_at(other, place);
    const Expr among_equal = there ? pool_.select(own.is_last,
                                                  pool_.select(own.has_place, both(is_ahead, there),
                                                               binary(EK::Or, is_ahead, there)),
                                                  is_ahead)
                                   : is_ahead;
    return binary(EK::Or, is_first, both(binary(EK::Eq, element, own.element), among_equal));
  }

  // Of the element at its place, under the names of the nests.
  ir::Block results(const Own& own) {
    ir::Block out;
    out.push_back(ir::make(matile::Let{nests_.place.name(), own.ahead}));
    Expr index = index_at(of_run_, own.at);
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
  Expr count_;    // elements of a row
  int64_t run_;   // elements of a run
  int64_t kept_;  // of them, those that the kernels pass on
  Expr has_place_;
  ir::Name sorted_;
  ir::Name index_;
  Expr of_run_;                  // the run of a point
  Expr runs_;                    // of a row
  bool has_empty_runs_ = false;  // of rows with fewer elements than places
};

}  // namespace

int64_t kept_of_run(const SortNests& nests, const std::set<std::string>& kept, int64_t run,
                    expr::ExprPool& pool) {
  const Expr places = places_asked(nests, kept, pool);
  if (places.op() != EK::IntConst || places.integer() >= run) return run;
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(places.integer(), 1))));
}

SortKernel run_kernels(const PointsContext& points, const SortNests& nests, const RunShape& shape,
                       Expr is_longer, expr::ExprPool& pool) {
  return RunLowering(points, nests, shape, pool).run(is_longer);
}

}  // namespace nautilus::lower
