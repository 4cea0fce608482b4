// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/split_reductions.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/equations.h"
#include "spec/facts/ranges.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Facts;
using expr::Op;

struct Guard {
  Expr condition;
  bool is_taken;  // the branch where the condition holds, or the other one
};

class Splitter {
 public:
  Splitter(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool),
        facts_(ir::facts_of(program, context.pool)),
        types_(tensor_types(program)),
        names_(program, context.pool) {}

  Let equation(Let let, std::vector<Let>& reductions) {
    base_ = let.name.str();
    reductions_ = &reductions;
    axes_ = let.axes;
    lifted_.clear();
    let.body = let.body.op() == Op::Reduce ? inside_reduce(let.body, {}) : lift(let.body, {});
    return let;
  }

 private:
  // Lifts reductions inside a reduction that itself stays.
  Expr inside_reduce(Expr e, const std::vector<Guard>& guards) {
    const size_t outer = axes_.size();
    std::vector<Expr> args(e.args().begin(), e.args().end());
    if (e.init()) args.back() = lift(e.init(), guards);
    for (size_t k = 0; k < e.axis_count(); ++k) axes_.push_back({e.axis(k).name(), e.extent(k)});
    args[0] = lift(e.body(), guards);
    axes_.resize(outer);
    return pool_.with_args(e, args);
  }

  Expr lift(Expr e, const std::vector<Guard>& guards) {
    if (!expr::has_reduce(e)) return e;
    if (e.op() == Op::Reduce) return lift_reduce(e, guards);
    std::vector<Expr> args(e.args().begin(), e.args().end());
    if (e.op() == Op::Select) {
      args[0] = lift(args[0], guards);
      for (const size_t branch : {size_t{1}, size_t{2}}) {
        // The condition is used in its lifted form: the equations it reads come first.
        std::vector<Guard> inner = guards;
        inner.push_back({args[0], branch == 1});
        args[branch] = lift(args[branch], inner);
      }
    } else {
      for (Expr& a : args) a = lift(a, guards);
    }
    return pool_.with_args(e, args);
  }

  Expr lift_reduce(Expr e, const std::vector<Guard>& guards) {
    const bool is_plain = guards.empty();
    // The same expression under other axes is another tensor: their extents
    // differ, or one is empty.
    const ir::Axes around = axes_;
    if (is_plain) {
      for (const Lifted& l : lifted_) {
        if (l.reduce == e && l.axes == around) return l.read;
      }
    }
    Expr reduce = guarded(inside_reduce(e, guards), guards);
    Let let;
    let.name = names_.fresh(fmt::format("{}.{}", base_, expr::name(e.reducer())));
    let.dtype = reduce.dtype();
    let.axes = axes_of(reduce);
    let.body = reduce;
    types_.emplace(std::string(let.name.str()), let.type());
    const Expr read = element(let, pool_);
    reductions_->push_back(std::move(let));
    if (is_plain) lifted_.push_back({e, around, read});
    return read;
  }

  // The axes in scope that an expression depends on.
  ir::Axes axes_of(Expr e) {
    const auto free = expr::free_vars(e);
    ir::Axes out;
    for (const ir::Axis& a : axes_) {
      if (std::find(free.begin(), free.end(), pool_.index(a.name)) != free.end()) out.push_back(a);
    }
    return out;
  }

  // Moves the guards into the body (and the initial element) if the axes of the new equation alone
  // do not prove that a read there is inside its tensor. An axis in scope that the reduction does
  // not depend on is a guard too: where it is empty, nothing was to be read.
  Expr guarded(Expr reduce, std::vector<Guard> guards) {
    Facts outside = facts_;
    for (const ir::Axis& a : axes_of(reduce)) outside.add_axis(pool_.index(a.name), a.extent);
    Facts inside = outside;
    for (size_t k = 0; k < reduce.axis_count(); ++k)
      inside.add_axis(reduce.axis(k), reduce.extent(k));
    auto needs_guard = [&](Expr part, const Facts& facts) {
      bool is_needed = false;
      expr::for_each(part, [&](Expr r) {
        if (r.op() != Op::Read) return;
        is_needed |= !is_inside(r, types_.at(std::string(r.name().str())), facts, pool_);
      });
      return is_needed;
    };
    const bool is_body = needs_guard(reduce.body(), inside);
    const bool is_init = reduce.init() && needs_guard(reduce.init(), outside);
    if (!is_body && !is_init) return reduce;
    ir::Axes kept = axes_of(reduce);
    for (const Guard& g : guards) {
      for (const ir::Axis& a : axes_of(g.condition)) kept.push_back(a);
    }
    for (const ir::Axis& a : axes_) {
      if (std::find(kept.begin(), kept.end(), a) != kept.end()) continue;
      const Expr is_nonempty = pool_.binary(Op::Gt, a.extent, pool_.integer(0));
      if (outside.prove(is_nonempty) != expr::Truth::True)
        guards.insert(guards.begin(), Guard{is_nonempty, true});
    }
    auto guard = [&](Expr part) {
      for (auto g = guards.rbegin(); g != guards.rend(); ++g) {
        const Expr zero = pool_.constant(0, part.dtype());
        part = g->is_taken ? pool_.select(g->condition, part, zero)
                           : pool_.select(g->condition, zero, part);
      }
      return part;
    };
    std::vector<Expr> args(reduce.args().begin(), reduce.args().end());
    if (is_body) args[0] = guard(reduce.body());
    if (is_init) args.back() = guard(reduce.init());
    return pool_.with_args(reduce, args);
  }

  expr::ExprPool& pool_;
  Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
  std::string base_;
  std::vector<Let>* reductions_ = nullptr;
  ir::Axes axes_;
  struct Lifted {
    Expr reduce;
    ir::Axes axes;
    Expr read;
  };
  std::vector<Lifted> lifted_;
};

}  // namespace

std::optional<ir::Program> split_reductions(const ir::Program& program, ir::PassContext& context) {
  Splitter splitter(program, context);
  return map_equations(program, [&](const Let& let, std::vector<Let>& reductions) {
    return splitter.equation(let, reductions);
  });
}

}  // namespace nautilus::spec
