// SPDX-License-Identifier: Apache-2.0
#include "driver/run/work_count.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/random.h"
#include "compile/manager.h"
#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::driver {
namespace {

using expr::Expr;
using EK = expr::Op;

// Condition under which an element of a tensor is read, over the tensor's own axes; null: always.
struct Demand {
  bool is_whole = false;
  std::vector<Expr> conditions;  // one of them holds
};

// Where its condition does not hold, every element of a tensor is the same.
enum class Masked : uint8_t { Other, Zero, MinusInfinity };
struct Mask {
  Expr condition;
  Masked value = Masked::Other;
};

Masked constant(Expr e) {
  if (!e.is_const() || !expr::is_float(e.dtype())) return Masked::Other;
  return e.number() == 0                                          ? Masked::Zero
         : e.number() == -std::numeric_limits<double>::infinity() ? Masked::MinusInfinity
                                                                  : Masked::Other;
}

// The value of `e` where that of `read` is known. An infinity does not meet another one: programs
// that subtract a maximum guard against it.
Masked value_of(Expr e, Expr read, Masked value) {
  const auto of = [&](Expr x) { return value_of(x, read, value); };
  if (e == read) return value;
  if (e.is_const()) return constant(e);
  if (e.op() == EK::Cast) return of(e[0]);
  if (e.op() == EK::Exp || e.op() == EK::Exp2)
    return of(e[0]) == Masked::MinusInfinity ? Masked::Zero : Masked::Other;
  if (e.op() == EK::Div) return of(e[0]) == Masked::Zero ? Masked::Zero : Masked::Other;
  if (e.op() == EK::Sub)
    return of(e[0]) == Masked::MinusInfinity ? Masked::MinusInfinity : Masked::Other;
  if (e.op() != EK::Add && e.op() != EK::Mul) return Masked::Other;
  const Masked wanted = e.op() == EK::Mul ? Masked::Zero : Masked::MinusInfinity;
  return of(e[0]) == wanted || of(e[1]) == wanted ? wanted : Masked::Other;
}

class WorkCounter {
 public:
  WorkCounter(const ir::Program& program, const ir::Environment& env, expr::ExprPool& pool)
      : program_(program), env_(env), pool_(pool) {
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<spec::Let>();
      if (!let) continue;
      axes_.emplace(let->name, let->axes);
      if (follows_product(let->body)) products_.insert(let->name);
    }
    for (const ir::Op& op : program.body) {
      if (const auto* o = op.get<spec::Output>()) demands_[o->name].is_whole = true;
      const auto* let = op.get<spec::Let>();
      if (!let) continue;
      visit(let->body, Expr());
      if (const Mask m = mask_of(let->body); m.value != Masked::Other) masks_.emplace(let->name, m);
    }
  }

  double flops() {
    double sum = 0;
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<spec::Let>();
      if (!let) continue;
      expr::for_each(let->body, [&](Expr e) {
        if (e.op() == EK::Reduce && is_sum_of_products(e)) sum += 2 * points(*let, e);
      });
    }
    return sum;
  }

  bool may_skip() const { return may_skip_; }

 private:
  // A sum of products of elements that differ in the axes they have: a contraction, or a product of
  // a matrix and a vector, which is not one but counts as work, too.
  static bool is_sum_of_products(Expr reduce) {
    if (reduce.reducer() != expr::Reducer::Sum) return false;
    bool found = false;
    expr::for_each(reduce.body(), [&](Expr e) {
      if (e.op() != EK::Mul || found) return;
      const auto a = expr::free_vars(e[0]);
      const auto b = expr::free_vars(e[1]);
      const auto lacks = [](const auto& x, const auto& y) {
        return std::any_of(x.begin(), x.end(),
                           [&](Expr v) { return std::find(y.begin(), y.end(), v) == y.end(); });
      };
      found = !expr::tensors_read(e[0]).empty() && !expr::tensors_read(e[1]).empty() &&
              (lacks(a, b) || lacks(b, a));
    });
    return found;
  }

  // A sum of products, or what is made of the same element of one.
  bool follows_product(Expr e) const {
    if (e.op() == EK::Reduce) return is_sum_of_products(e);
    if (e.op() == EK::Read && products_.contains(e.name())) return true;
    return std::any_of(e.args().begin(), e.args().end(),
                       [&](Expr a) { return follows_product(a); });
  }

  // Reads with the conditions around them, in the reader's axes.
  void visit(Expr e, Expr under) {
    if (e.op() == EK::Select) {
      may_skip_ |= !is_known(e[0]) && (follows_product(e[1]) || follows_product(e[2]));
      visit(e[0], under);
      visit(e[1], both(under, e[0]));
      visit(e[2], both(under, pool_.unary(EK::Not, e[0])));
      return;
    }
    if (e.op() == EK::Read) demand(e, under);
    for (Expr a : e.args()) visit(a, under);
  }

  bool is_known(Expr condition) const { return expr::tensors_read(condition).empty(); }

  // The value of the expression where a condition over positions fails.
  Mask mask_of(Expr e) {
    if (e.op() == EK::Select && is_known(e[0]) && constant(e[2]) != Masked::Other)
      return {e[0], constant(e[2])};
    Mask found;
    expr::for_each(e, [&](Expr read) {
      if (found.condition || read.op() != EK::Read) return;
      const auto mask = masks_.find(read.name());
      if (mask == masks_.end()) return;
      const Masked value = value_of(e, read, mask->second.value);
      if (value == Masked::Other) return;
      expr::Substitution own;
      const ir::Axes& axes = axes_.at(read.name());
      for (size_t k = 0; k < axes.size(); ++k) own.emplace(pool_.index(axes[k].name), read[k]);
      found = {expr::substitute(pool_, mask->second.condition, own), value};
    });
    return found;
  }

  Expr both(Expr a, Expr b) { return a ? pool_.binary(EK::And, a, b) : b; }

  void demand(Expr read, Expr under) {
    Demand& d = demands_[read.name()];
    const auto axes = axes_.find(read.name());
    if (axes == axes_.end() || !under || !expr::tensors_read(under).empty()) {
      d.is_whole = true;
      return;
    }
    expr::Substitution own;
    for (size_t k = 0; k < read.args().size(); ++k) {
      if (read[k].op() != EK::Var) {
        d.is_whole = true;
        return;
      }
      own.insert_or_assign(read[k], pool_.index(axes->second[k].name));
    }
    const Expr condition = expr::substitute(pool_, under, own);
    for (Expr v : expr::free_vars(condition)) {
      const bool is_axis = std::any_of(axes->second.begin(), axes->second.end(),
                                       [&](const ir::Axis& a) { return pool_.index(a.name) == v; });
      if (!is_axis && !env_.sizes.contains(v.name().str()) &&
          !env_.scalars.contains(v.name().str())) {
        d.is_whole = true;
        return;
      }
    }
    d.conditions.push_back(condition);
  }

  // Points of the equation and of the reduction in it at which something is multiplied.
  double points(const spec::Let& let, Expr reduce) {
    ir::Axes all = let.axes;
    for (size_t k = 0; k < reduce.axis_count(); ++k)
      all.push_back({reduce.axis(k).name(), reduce.extent(k)});
    double volume = 1;
    for (const ir::Axis& a : all)
      volume *= static_cast<double>(std::max<int64_t>(0, ir::evaluate_size(a.extent, env_)));
    const Demand& d = demands_[let.name];
    const Mask mask = mask_of(reduce.body());
    const Expr inner =
        mask.value == Masked::Zero && is_known(mask.condition) ? mask.condition : Expr();
    if ((d.is_whole || d.conditions.empty()) && !inner) return volume;
    return volume * share(all, d, inner);
  }

  // Of random points, the same ones in every run.
  double share(const ir::Axes& axes, const Demand& d, Expr inner) {
    constexpr int kPoints = 1 << 15;
    base::Random random(1);
    ir::Environment env = env_;
    env.tensors.clear();
    int hits = 0;
    for (int n = 0; n < kPoints; ++n) {
      for (const ir::Axis& a : axes) {
        const int64_t extent = ir::evaluate_size(a.extent, env_);
        if (extent <= 0) return 0;
        env.sizes.insert_or_assign(std::string(a.name.str()), random.integer(0, extent - 1));
      }
      const bool is_needed = d.is_whole || d.conditions.empty() ||
                             std::any_of(d.conditions.begin(), d.conditions.end(),
                                         [&](Expr c) { return ir::evaluate(c, env).i != 0; });
      hits += is_needed && (!inner || ir::evaluate(inner, env).i != 0) ? 1 : 0;
    }
    return static_cast<double>(hits) / kPoints;
  }

  const ir::Program& program_;
  const ir::Environment& env_;
  expr::ExprPool& pool_;
  std::unordered_map<ir::Name, ir::Axes> axes_;
  std::unordered_map<ir::Name, Demand> demands_;
  std::unordered_map<ir::Name, Mask> masks_;
  std::unordered_set<ir::Name> products_;  // tensors that follow one
  bool may_skip_ = false;
};

double bytes_of(const ir::TensorType& type, const ir::Environment& env) {
  double n = expr::bytes(type.dtype);
  for (Expr d : type.dims)
    n *= static_cast<double>(std::max<int64_t>(0, ir::evaluate_size(d, env)));
  return n;
}

}  // namespace

Work count_work(const ir::Program& program, const ir::Environment& env, Unit& unit) {
  Work out;
  std::map<std::string, ir::TensorType> types;
  for (const ir::Op& op : program.body) {
    if (const auto* i = op.get<spec::Input>()) out.bytes += bytes_of(i->type, env);
    if (const auto* let = op.get<spec::Let>()) types.emplace(let->name.str(), let->type());
    if (const auto* o = op.get<spec::Output>())
      out.bytes += bytes_of(types.at(std::string(o->name.str())), env);
  }
  // Every reduction an equation of its own, conditions where they are read.
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  ir::Program current = program;
  for (const char* name : {"simplify", "inline_conditions", "split_reductions"}) {
    auto next = compile::run_pass(compile::the_pass(name), current, context);
    if (!next) return out;
    current = std::move(*next);
  }
  WorkCounter counter(current, env, unit.pool);
  out.flops = counter.flops();
  out.may_skip = counter.may_skip();
  return out;
}

}  // namespace nautilus::driver
