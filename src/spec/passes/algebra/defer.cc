// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/defer.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "spec/equations.h"
#include "spec/eval/eval_reduction.h"
#include "spec/facts/factors.h"
#include "spec/facts/held_tensors.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

class Deferral {
 public:
  Deferral(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool),
        names_(program, context.pool),
        values_(program, context.pool, equations_),
        factors_(program, context.pool, equations_),
        held_(program, context.pool),
        is_exact_(ir::numerics_of(program).rounding == ir::Rounding::Exact) {}

  Let equation(const Let& let, std::vector<Let>& sums) {
    counts_ = true;
    std::optional<Let> outer = outer_equation(let, sums);
    if (!counts_) outer = outer_equation(let, sums);
    for (const Let& sum : sums) equations_.emplace(sum.name, sum);
    equations_.emplace(let.name, outer.value_or(let));
    return outer.value_or(let);
  }

 private:
  // The equation over sums that have lost their factors; nothing where none has any to lose.
  std::optional<Let> outer_equation(const Let& let, std::vector<Let>& sums) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || r.init() ||
        !is_float(r.dtype())) {
      return std::nullopt;
    }
    factors_.open(let);
    std::vector<Split> terms;
    for (const auto& [value, is_negative] : factors_.addends(r.body(), false)) {
      terms.push_back(factors_.split(value, counts_));
      if (!terms.back().staying) return std::nullopt;
      terms.back().is_negative = is_negative;
    }
    // Sums of products are divided only where every product has factors of its own that leave.
    const bool all_lose =
        terms.size() > 1 && terms.size() <= Factors::kMaxTerms &&
        std::all_of(terms.begin(), terms.end(), [](const Split& t) { return !t.leaving.empty(); });
    // Factors that all products share leave the undivided sum: divided products would cancel.
    const bool is_alike = std::all_of(
        terms.begin(), terms.end(), [&](const Split& t) { return t.leaving == terms[0].leaving; });
    if (all_lose && is_alike) {
      terms = {together(terms)};
    } else if (!all_lose || !may_be_apart(let, terms)) {
      terms = {factors_.split(r.body(), counts_)};
    }
    if (terms[0].leaving.empty() || !terms[0].staying) return std::nullopt;
    counts_ &= std::all_of(terms.begin(), terms.end(),
                           [&](const Split& t) { return can_count(t.leaving, let); });
    if (!counts_ && has_counted(terms)) return std::nullopt;
    if (std::any_of(terms.begin(), terms.end(),
                    [&](const Split& t) { return makes_licence(let, t.staying); }))
      return std::nullopt;
    Let outer = let;
    outer.body = {};
    for (const Split& t : terms) {
      const Expr e = deferred(let, t, sums);
      outer.body = outer.body      ? pool_.binary(t.is_negative ? Op::Sub : Op::Add, outer.body, e)
                   : t.is_negative ? pool_.unary(Op::Neg, e)
                                   : e;
    }
    return outer;
  }

  // Whether several sums may replace one. Their difference loses digits where it is much smaller
  // than the sums: the contract allows that only for matrix products, one for each product of the
  // terms, of which one operand may be rounded anyway (docs/language.md, section 8). Sums of
  // numbers that are not negative lose nothing.
  bool may_be_apart(const Let& let, const std::vector<Split>& terms) {
    const auto is_added = [&](const Split& t) {
      return !t.is_negative && values_.is_nonnegative(t.staying) &&
             std::all_of(t.leaving.begin(), t.leaving.end(),
                         [&](const Factor& f) { return values_.is_nonnegative(f.value); });
    };
    if (std::all_of(terms.begin(), terms.end(), is_added)) return true;
    const std::vector<Expr> results = result_axes(let, pool_);
    return !is_exact_ && licensed_roundoff(let.body, let.body.body()) > 0 &&
           std::all_of(terms.begin(), terms.end(), [&](const Split& t) {
             return algebra::is_contraction(algebra::factors(t.staying), results);
           });
  }

  // Whether what stays has an operand of 16 bits next to which others may be rounded, and the sum
  // as it was written has none.
  bool makes_licence(const Let& let, Expr staying) const {
    const Expr written = held_.marked(let.body);
    return licensed_roundoff(written, staying) > 0 &&
           licensed_roundoff(written, written.body()) == 0;
  }

  // The sum of what stays of all terms, which lose the same.
  Split together(const std::vector<Split>& terms) {
    Split one{terms[0].leaving, {}, false};
    for (const Split& t : terms) {
      one.staying = one.staying
                        ? pool_.binary(t.is_negative ? Op::Sub : Op::Add, one.staying, t.staying)
                    : t.is_negative ? pool_.unary(Op::Neg, t.staying)
                                    : t.staying;
    }
    return one;
  }

  // Defines the sum of what stays, and gives it with what left.
  Expr deferred(const Let& let, const Split& t, std::vector<Let>& sums) {
    std::vector<Expr> args(let.body.args().begin(), let.body.args().end());
    args[0] = t.staying;
    Let inner{names_.fresh(fmt::format("{}.acc", let.name.str())), let.axes, let.dtype,
              pool_.with_args(let.body, args)};
    const Expr sum = element(inner, pool_);
    const Expr zero = pool_.constant(0, sum.dtype());
    // The product of factors that need the same care, in the order of the text: all factors before
    // all divisors could leave the range of the dtype.
    const auto times = [&](Expr e, auto is_meant, auto value_of) {
      for (const Factor& f : t.leaving) {
        if (is_meant(f)) e = pool_.binary(f.is_divisor ? Op::Div : Op::Mul, e, value_of(f));
      }
      return e;
    };
    const auto as_it_is = [](const Factor& f) { return f.value; };
    Expr e = times(
        sum, [](const Factor& f) { return f.may_overflow; }, as_it_is);
    if (e != sum) e = pool_.select(pool_.binary(Op::Eq, sum, zero), zero, e);
    Expr shown;
    for (const Factor& f : t.leaving) shown = f.shown ? f.shown : shown;
    if (shown) {
      const Let count = count_of(let, shown);
      const Expr is_hidden =
          pool_.binary(Op::Eq, element(count, pool_), pool_.constant(0, count.dtype));
      const auto is_counted = [](const Factor& f) { return static_cast<bool>(f.shown); };
      e = pool_.select(is_hidden, zero, times(e, is_counted, as_it_is));
      sums.push_back(count);
    }
    e = times(
        e, [](const Factor& f) { return !f.may_overflow && !f.shown; },
        [&](const Factor& f) { return factors_.of_empty_sum(f); });
    factors_.add_type(inner);
    sums.push_back(std::move(inner));
    return e;
  }

  // How many terms of a sum are not hidden.
  Let count_of(const Let& let, Expr shown) {
    std::vector<Expr> args(let.body.args().begin(), let.body.args().end());
    args[0] = shown;
    Let count{names_.fresh(fmt::format("{}.shown", let.name.str())),
              {},
              let.dtype,
              pool_.with_args(let.body, args)};
    for (const ir::Axis& a : let.axes) {
      if (expr::depends_on(shown, pool_.index(a.name))) count.axes.push_back(a);
    }
    factors_.add_type(count);
    return count;
  }

  static bool has_counted(const std::vector<Split>& terms) {
    return std::any_of(terms.begin(), terms.end(), [](const Split& t) {
      return std::any_of(t.leaving.begin(), t.leaving.end(),
                         [](const Factor& f) { return static_cast<bool>(f.shown); });
    });
  }

  // A factor that only some terms have, all under one condition, which says the same for whole rows
  // of the result.
  bool can_count(const std::vector<Factor>& leaving, const Let& let) const {
    Expr shown;
    for (const Factor& f : leaving) {
      if (!f.shown) continue;
      if (shown && shown != f.shown) return false;
      shown = f.shown;
    }
    return !shown || std::any_of(let.axes.begin(), let.axes.end(), [&](const ir::Axis& a) {
      return !expr::depends_on(shown, pool_.index(a.name));
    });
  }

  expr::ExprPool& pool_;
  TensorNames names_;
  Equations equations_;
  KnownValues values_;
  Factors factors_;
  HeldTensors held_;
  bool is_exact_;
  // Whether factors that could spoil rows that a condition hides may leave, for a count of the
  // rest.
  bool counts_ = true;
};

}  // namespace

std::optional<ir::Program> defer(const ir::Program& program, ir::PassContext& context) {
  Deferral deferral(program, context);
  return map_equations(program, [&](const Let& let, std::vector<Let>& sums) {
    return deferral.equation(let, sums);
  });
}

}  // namespace nautilus::spec
