// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/split_reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "expr/walk.h"
#include "spec/ops.h"
#include "spec/ranges.h"

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
        types_(tensor_types(program)) {
    for (const auto& [name, type] : types_) names_.insert(name);
    out_.level = program.level;
    out_.name = program.name;
  }

  ir::Program run(const ir::Program& program) {
    for (const ir::Op& op : program.body) {
      if (const auto* let = op.get<Let>()) {
        split(*let, op.span());
      } else {
        out_.body.push_back(op);
      }
    }
    return std::move(out_);
  }

 private:
  void split(const Let& let, diag::Span span) {
    base_ = let.name.str();
    span_ = span;
    axes_ = let.axes;
    lifted_.clear();
    Let copy = let;
    if (let.body.op() == Op::Reduce) {
      copy.body = inside_reduce(let.body, {});
    } else {
      copy.body = lift(let.body, {});
    }
    out_.body.push_back(ir::make(std::move(copy), span));
  }

  // Lifts what stands inside a reduction that stays where it is.
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
        // The condition is used as it stands after lifting: the equations it
        // reads come first.
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
    let.name = unique(fmt::format("{}.{}", base_, expr::name(e.reducer())));
    let.dtype = reduce.dtype();
    let.axes = axes_of(reduce);
    std::vector<Expr> indices;
    for (const ir::Axis& a : let.axes) indices.push_back(pool_.index(a.name));
    let.body = reduce;
    types_.emplace(std::string(let.name.str()), let.type());
    const Expr read = pool_.read(let.name, let.dtype, indices);
    out_.body.push_back(ir::make(std::move(let), span_));
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

  // Takes the guards into the body (and the initial element) if a read there is
  // not proven to be inside its tensor by the axes of the new equation alone.
  // An axis in scope that the reduction does not depend on is a guard too:
  // where it is empty, nothing was to be read.
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

  ir::Name unique(std::string name) {
    const std::string stem = name;
    for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}_{}", stem, n);
    return pool_.name(name);
  }

  expr::ExprPool& pool_;
  Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  std::set<std::string> names_;
  ir::Program out_;
  std::string base_;
  diag::Span span_;
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
  return Splitter(program, context).run(program);
}

}  // namespace nautilus::spec
