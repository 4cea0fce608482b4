// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/exchange_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "algebra/contraction.h"
#include "algebra/exact_halves.h"
#include "ir/decl.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"
#include "spec/facts/sum_terms.h"
#include "spec/facts/values.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Reducer;

constexpr size_t kMostOfTerm = 16;

// Factors that share axes of the outer sum, which is theirs first.
struct FirstSum {
  std::vector<Expr> factors;
  ir::Axes summed;
  ir::Axes axes;  // of the result
};

struct Exchanged {
  std::vector<FirstSum> first;
  std::vector<Expr> staying;  // factors in the sum behind
  std::vector<Expr> leaving;  // factors of the result
};

bool has_axis(const std::vector<Expr>& list, Expr axis) {
  return std::any_of(list.begin(), list.end(), [&](Expr f) { return expr::depends_on(f, axis); });
}

class Exchange {
 public:
  Exchange(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool),
        facts_(ir::facts_of(program, pool)),
        types_(tensor_types(program)),
        values_(program, pool, equations_),
        names_(program, pool),
        terms_(program, pool) {}

  Let equation(const Let& let, std::vector<Let>& before) {
    let_ = &let;
    before_ = &before;
    taken_ = all_axes(let, pool_);
    Let out = let;
    out.body = exchanged(let.body);
    equations_.emplace(let.name, let);
    return out;
  }

 private:
  // With the sums in it exchanged, as far as no condition guards them and they are in no other.
  Expr exchanged(Expr e) {
    if (e.op() == Op::Reduce) return exchanged_sum(e);
    if (e.op() == Op::Select || e.op() == Op::And || e.op() == Op::Or || !expr::has_reduce(e))
      return e;
    std::vector<Expr> args(e.args().begin(), e.args().end());
    for (Expr& a : args) a = exchanged(a);
    return pool_.with_args(e, args);
  }

  Expr exchanged_sum(Expr r) {
    if (r.reducer() != Reducer::Sum || r.init() || r.dtype() != DType::F32) return r;
    ir::Axes axes = let_->axes;
    for (const ir::Axis& a : axes_of(r)) axes.push_back(a);
    const std::vector<SumTerm> terms = terms_.of(r.body(), axes, taken_);
    std::vector<Exchanged> plans;
    for (const SumTerm& t : terms) {
      if (!t.sum) continue;
      auto plan = plan_of(r, t);
      if (!plan) return r;
      plans.push_back(std::move(*plan));
    }
    if (plans.empty()) return r;
    Expr out;
    size_t next = 0;
    for (const SumTerm& t : terms) {
      if (t.sum) out = added(out, behind(r, t, plans[next++]), t.is_negative);
    }
    return with_others(r, terms, out);
  }

  Expr added(Expr sum, Expr e, bool is_negative) {
    if (sum) return pool_.binary(is_negative ? Op::Sub : Op::Add, sum, e);
    return is_negative ? pool_.unary(Op::Neg, e) : e;
  }

  // With the outer sums of terms without sums of their own: one for all that have the same axes.
  Expr with_others(Expr r, const std::vector<SumTerm>& terms, Expr out) {
    std::vector<std::pair<std::vector<bool>, Expr>> others;
    for (const SumTerm& t : terms) {
      if (t.sum) continue;
      Expr value = product(t.factors);
      for (Expr d : t.divisors) value = pool_.binary(Op::Div, value, d);
      std::vector<bool> axes;
      for (size_t k = 0; k < r.axis_count(); ++k)
        axes.push_back(expr::depends_on(value, r.axis(k)));
      const auto same = std::find_if(others.begin(), others.end(),
                                     [&](const auto& other) { return other.first == axes; });
      if (same == others.end()) {
        others.emplace_back(axes, added({}, value, t.is_negative));
      } else {
        same->second = added(same->second, value, t.is_negative);
      }
    }
    for (const auto& [axes, value] : others) out = added(out, sum_of(r, value), false);
    return out;
  }

  // How the sums of a term are exchanged; nothing if that gains nothing.
  std::optional<Exchanged> plan_of(Expr r, const SumTerm& t) {
    const std::vector<Expr> product = algebra::factors(t.sum.body());
    if (product.size() + t.factors.size() > kMostOfTerm) return std::nullopt;
    ir::Axes all = let_->axes;
    for (Expr sum : {r, t.sum}) {
      for (const ir::Axis& a : axes_of(sum)) all.push_back(a);
    }
    const auto is_summed = [&](Expr f, Expr sum) {
      for (size_t k = 0; k < sum.axis_count(); ++k) {
        if (expr::depends_on(f, sum.axis(k))) return true;
      }
      return false;
    };
    for (Expr d : t.divisors) {
      if (is_summed(d, r)) return std::nullopt;
    }
    Exchanged out;
    bool has_axis_of_product = false;
    std::vector<Expr> moving;
    for (Expr f : product) {
      const bool is_moving = is_summed(f, r);
      has_axis_of_product |= is_moving;
      (is_moving ? moving : out.staying).push_back(f);
    }
    for (Expr f : t.factors) {
      const bool is_moving = is_summed(f, r);
      // Where the sum behind is empty, nothing would be multiplied with it.
      if (is_moving && !values_.is_finite(f)) return std::nullopt;
      (is_moving ? moving : out.leaving).push_back(f);
    }
    if (!has_axis_of_product) return std::nullopt;
    out.first = grouped(moving, r);
    for (FirstSum& first : out.first) {
      if (!complete(first, product, r, all)) return std::nullopt;
    }
    if (is_rounded(out, product)) return std::nullopt;
    return out;
  }

  // Factors that share an axis of the sum belong together.
  static std::vector<FirstSum> grouped(const std::vector<Expr>& moving, Expr r) {
    std::vector<FirstSum> groups;
    for (Expr f : moving) groups.push_back({{f}, {}, {}});
    for (size_t k = 0; k < r.axis_count(); ++k) {
      if (!has_axis(moving, r.axis(k))) continue;
      FirstSum joined;
      std::vector<FirstSum> others;
      for (FirstSum& g : groups) {
        if (!has_axis(g.factors, r.axis(k))) {
          others.push_back(std::move(g));
          continue;
        }
        joined.factors.insert(joined.factors.end(), g.factors.begin(), g.factors.end());
        joined.summed.insert(joined.summed.end(), g.summed.begin(), g.summed.end());
      }
      joined.summed.push_back({r.axis(k).name(), r.extent(k)});
      others.push_back(std::move(joined));
      groups = std::move(others);
    }
    return groups;
  }

  // Finds the axes of a first sum. False if it has no fewer axes than the product had, or if its
  // result has more of them than the tensors that it reads, or if its reads are inside only because
  // other axes are not empty.
  bool complete(FirstSum& first, const std::vector<Expr>& product, Expr r,
                const ir::Axes& all) const {
    bool is_less = false;
    for (const ir::Axis& a : all) {
      const Expr axis = pool_.index(a.name);
      const bool is_in_product = has_axis(product, axis);
      const bool is_in_first = has_axis(first.factors, axis);
      if (is_in_first && !is_in_product) return false;
      is_less |= is_in_product && !is_in_first;
      bool is_summed = false;
      for (size_t k = 0; k < r.axis_count(); ++k) is_summed |= r.axis(k) == axis;
      if (is_in_first && !is_summed) first.axes.push_back(a);
    }
    size_t rank = 0;
    std::vector<Expr> results;
    for (const ir::Axis& a : first.axes) results.push_back(pool_.index(a.name));
    for (Expr f : first.factors) {
      expr::for_each(f, [&](Expr e) {
        if (e.op() == Op::Read) rank = std::max(rank, e.args().size());
      });
    }
    return is_less && first.axes.size() <= rank &&
           !algebra::is_contraction(first.factors, results) && stays_inside(first, all);
  }

  bool stays_inside(const FirstSum& first, const ir::Axes& all) const {
    expr::Facts fewer = facts_;
    expr::Facts with_all = facts_;
    for (const ir::Axis& a : all) {
      const Expr axis = pool_.index(a.name);
      with_all.add_axis(axis, a.extent);
      if (has_axis(first.factors, axis)) fewer.add_axis(axis, a.extent);
    }
    return std::all_of(first.factors.begin(), first.factors.end(), [&](Expr f) {
      return are_inside_without_axes(f, types_, fewer, with_all, pool_);
    });
  }

  // Whether a first sum would be the operand of a matrix product of which 16 bits held a factor.
  bool is_rounded(const Exchanged& plan, const std::vector<Expr>& product) const {
    const bool has_half = std::any_of(product.begin(), product.end(), [](Expr f) {
      return algebra::exact_halves(f).is_stored_float;
    });
    std::vector<Expr> list = plan.staying;
    for (const FirstSum& first : plan.first) {
      std::vector<Expr> indices;
      for (const ir::Axis& a : first.axes) indices.push_back(pool_.index(a.name));
      list.push_back(pool_.read(let_->name, DType::F32, indices));
    }
    return has_half && algebra::is_contraction(list, result_axes(*let_, pool_));
  }

  // The sum behind the first sums, which become equations.
  Expr behind(Expr r, const SumTerm& t, const Exchanged& plan) {
    std::vector<Expr> factors = plan.staying;
    for (const FirstSum& first : plan.first) {
      const Expr value = product(first.factors);
      Let sum{names_.fresh(fmt::format("{}.sums", let_->name.str())),
              in_order_of_memory(value, first.axes, pool_), DType::F32,
              reduce(value, first.summed)};
      factors.push_back(element(sum, pool_));
      types_.emplace(std::string(sum.name.str()), sum.type());
      before_->push_back(std::move(sum));
    }
    Expr out = reduce(product(factors), axes_of(t.sum));
    for (Expr f : plan.leaving) out = pool_.binary(Op::Mul, out, unless_empty(r, f, 1));
    return divided(r,
                   times_absent(out, r,
                                [&](Expr axis) {
                                  return std::any_of(
                                      plan.first.begin(), plan.first.end(),
                                      [&](const FirstSum& f) { return has_axis(f.factors, axis); });
                                }),
                   t);
  }

  // The outer sum of a value without sums.
  Expr sum_of(Expr r, Expr value) {
    ir::Axes summed;
    for (const ir::Axis& a : axes_of(r)) {
      if (expr::depends_on(value, pool_.index(a.name))) summed.push_back(a);
    }
    const Expr sum = summed.empty() ? unless_empty(r, value, 0) : reduce(value, summed);
    return times_absent(sum, r, [&](Expr axis) { return expr::depends_on(value, axis); });
  }

  // Axes of the outer sum that a term does not have repeat it.
  Expr times_absent(Expr e, Expr r, auto&& has) {
    for (size_t k = 0; k < r.axis_count(); ++k) {
      if (!has(r.axis(k))) e = pool_.binary(Op::Mul, e, pool_.cast(DType::F32, r.extent(k)));
    }
    return e;
  }

  Expr divided(Expr r, Expr e, const SumTerm& t) {
    for (Expr d : t.divisors) e = pool_.binary(Op::Div, e, unless_empty(r, d, 1));
    return e;
  }

  // A value behind the sum, or another one where the sum has no terms: an empty sum is 0, whatever
  // it would be multiplied with.
  Expr unless_empty(Expr r, Expr value, double otherwise) {
    if (value.op() == Op::FloatConst && std::isfinite(value.number()) && value.number() != 0)
      return value;
    for (size_t k = 0; k < r.axis_count(); ++k) {
      const Expr n = r.extent(k);
      if (n.op() == Op::IntConst && n.integer() > 0) continue;
      value = pool_.select(pool_.binary(Op::Le, n, pool_.integer(0)),
                           pool_.constant(otherwise, value.dtype()), value);
    }
    return value;
  }

  Expr product(const std::vector<Expr>& list) {
    Expr out;
    for (Expr f : list) out = out ? pool_.binary(Op::Mul, out, f) : f;
    return out;
  }

  Expr reduce(Expr value, const ir::Axes& over) {
    std::vector<Expr> axes;
    std::vector<Expr> extents;
    for (const ir::Axis& a : over) {
      axes.push_back(pool_.index(a.name));
      extents.push_back(a.extent);
    }
    return pool_.reduce(Reducer::Sum, value, axes, extents);
  }

  static ir::Axes axes_of(Expr sum) {
    ir::Axes axes;
    for (size_t k = 0; k < sum.axis_count(); ++k)
      axes.push_back({sum.axis(k).name(), sum.extent(k)});
    return axes;
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  Equations equations_;  // in front of the one that is looked at
  KnownValues values_;
  TensorNames names_;
  SumTerms terms_;
  const Let* let_ = nullptr;
  std::vector<Let>* before_ = nullptr;
  std::unordered_set<Expr> taken_;
};

}  // namespace

std::optional<ir::Program> exchange_sums(const ir::Program& program, ir::PassContext& context) {
  Exchange exchange(program, context.pool);
  return map_equations(program, [&](const Let& let, std::vector<Let>& before) {
    return std::optional(exchange.equation(let, before));
  });
}

}  // namespace nautilus::spec
