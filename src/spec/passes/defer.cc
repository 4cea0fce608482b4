// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/defer.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/equations.h"
#include "spec/ranges.h"
#include "spec/values.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

struct Factor {
  Expr value;
  bool is_divisor;
  // 1 in the terms that have it, 0 in those that are hidden; null where that makes no difference.
  Expr shown = {};
  bool operator==(const Factor&) const = default;
};
struct Split {
  std::vector<Factor> leaving;
  Expr staying;  // null: 1
  bool is_negative = false;
};

// What stands around a factor: nothing, a condition that keeps its reads inside, or one that may
// hide all terms.
enum class Guard : uint8_t { None, Reads, HidesAll };

class Deferral {
 public:
  Deferral(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool),
        facts_(ir::facts_of(program, context.pool)),
        types_(tensor_types(program)),
        names_(program, context.pool),
        values_(program, context.pool, equations_) {}

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
    reduced_.clear();
    for (size_t k = 0; k < r.axis_count(); ++k) reduced_.push_back(r.axis(k));
    outer_ = facts_;
    for (const ir::Axis& a : let.axes) outer_.add_axis(pool_.index(a.name), a.extent);
    reduction_ = r;
    steps_ = 0;
    std::vector<Split> terms;
    for (const auto& [value, is_negative] : addends(r.body(), false)) {
      terms.push_back(split(value, Guard::None, false));
      if (!terms.back().staying) return std::nullopt;
      terms.back().is_negative = is_negative;
    }
    // Sums of products are taken apart only where every product has factors of its own to lose.
    const bool is_apart =
        terms.size() > 1 && terms.size() <= kMaxTerms &&
        std::all_of(terms.begin(), terms.end(), [](const Split& t) { return !t.leaving.empty(); });
    if (!is_apart) terms = {split(r.body(), Guard::None, false)};
    // What all of them lose leaves the sum as it is: products taken apart would cancel.
    const bool is_alike = std::all_of(
        terms.begin(), terms.end(), [&](const Split& t) { return t.leaving == terms[0].leaving; });
    if (is_apart && is_alike) terms = {together(terms)};
    if (terms[0].leaving.empty() || !terms[0].staying) return std::nullopt;
    counts_ &= std::all_of(terms.begin(), terms.end(),
                           [&](const Split& t) { return can_count(t.leaving, let); });
    if (!counts_ && has_counted(terms)) return std::nullopt;
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
    Expr e = element(inner, pool_);
    Expr shown;
    for (const bool is_divisor : {false, true}) {
      for (const Factor& f : t.leaving) {
        if (!f.shown || f.is_divisor != is_divisor) continue;
        shown = f.shown;
        e = pool_.binary(is_divisor ? Op::Div : Op::Mul, e, f.value);
      }
    }
    if (shown) {
      const Let count = count_of(let, shown);
      const Expr is_hidden =
          pool_.binary(Op::Eq, element(count, pool_), pool_.constant(0, count.dtype));
      e = pool_.select(is_hidden, pool_.constant(0, e.dtype()), e);
      sums.push_back(count);
    }
    for (const bool is_divisor : {false, true}) {
      for (const Factor& f : t.leaving) {
        if (!f.shown && f.is_divisor == is_divisor)
          e = pool_.binary(is_divisor ? Op::Div : Op::Mul, e, of_empty_sum(f, let.body));
      }
    }
    types_.emplace(std::string(inner.name.str()), inner.type());
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
    types_.emplace(std::string(count.name.str()), count.type());
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

  // The factor where the sum has terms. An empty sum is 0: nothing may make NaN of it.
  Expr of_empty_sum(const Factor& f, Expr sum) {
    if (values_.is_finite(f.value) && (!f.is_divisor || values_.is_nonzero(f.value)))
      return f.value;
    Expr is_empty;
    for (size_t k = 0; k < sum.axis_count(); ++k) {
      const Expr extent = sum.extent(k);
      const Expr has_terms = pool_.binary(Op::Ge, extent, pool_.integer(1));
      if (facts_.prove(has_terms) == expr::Truth::True) continue;
      const Expr c = pool_.binary(Op::Le, extent, pool_.integer(0));
      is_empty = is_empty ? pool_.binary(Op::Or, is_empty, c) : c;
    }
    if (!is_empty) return f.value;
    return pool_.select(is_empty, pool_.constant(f.is_divisor ? 1 : 0, f.value.dtype()), f.value);
  }

  static constexpr size_t kMaxTerms = 4;
  // Equations share their parts; written out as trees they may be too large to look at.
  static constexpr int kMaxSteps = 2000;

  // The products of a sum of products, one level of element-wise equations deep. An addend without
  // the reduced axis keeps the sum together: taking x - mean(x) apart would cancel.
  std::vector<std::pair<Expr, bool>> addends(Expr e, bool is_negative) {
    const std::vector<std::pair<Expr, bool>> whole = {{e, is_negative}};
    if (++steps_ > kMaxSteps || !is_reduced(e)) return whole;
    switch (e.op()) {
      case Op::Add:
      case Op::Sub: {
        if (!is_reduced(e[0]) || !is_reduced(e[1])) return whole;
        auto out = addends(e[0], is_negative);
        for (auto& x : addends(e[1], (e.op() == Op::Sub) != is_negative)) out.push_back(x);
        return out;
      }
      case Op::Mul:
        for (const size_t k : {size_t{0}, size_t{1}}) {
          const auto parts = addends(e[k], is_negative);
          if (parts.size() < 2 || parts.size() > kMaxTerms) continue;
          std::vector<std::pair<Expr, bool>> out;
          for (const auto& [x, sign] : parts)
            out.emplace_back(pool_.binary(Op::Mul, k == 0 ? x : e[0], k == 0 ? e[1] : x), sign);
          return out;
        }
        return whole;
      case Op::Read: {
        const auto it = equations_.find(e.name());
        if (it == equations_.end() || expr::has_reduce(it->second.body)) return whole;
        const auto parts = addends(body_at(it->second, e, pool_), is_negative);
        return parts.size() < 2 ? whole : parts;
      }
      default:
        return whole;
    }
  }

  // Whether a condition holds at the first place of the reduced axes.
  bool holds_first(Expr condition) {
    expr::Substitution first;
    for (Expr axis : reduced_) first.emplace(axis, pool_.integer(0));
    return outer_.prove(expr::substitute(pool_, condition, first)) == expr::Truth::True;
  }

  bool is_reduced(Expr e) const {
    return std::any_of(reduced_.begin(), reduced_.end(),
                       [&](Expr axis) { return expr::depends_on(e, axis); });
  }

  // `is_below`: the value divides.
  Split split(Expr e, Guard guard, bool is_below) {
    const Split none{{}, e, false};
    if (++steps_ > kMaxSteps) return none;
    if (!is_reduced(e)) {
      if (e.is_const()) return none;
      // Outside of its guard, and where there are no terms, the value must still be readable.
      if (guard != Guard::None ? !are_inside(e, types_, outer_, pool_)
                               : !are_inside_without_terms(e, reduction_, types_, outer_, pool_))
        return none;
      // Where a guard hides every term the sum is 0, whatever would have been divided by: the
      // factor must not be infinite, nor the divisor 0.
      const bool may_spoil = guard == Guard::HidesAll &&
                             !(values_.is_finite(e) && (!is_below || values_.is_nonzero(e)));
      if (may_spoil && !counts_) return none;
      const Expr shown = may_spoil ? pool_.constant(1, e.dtype()) : Expr{};
      return {{{e, false, shown}}, {}, false};
    }
    switch (e.op()) {
      case Op::Mul: {
        Split a = split(e[0], guard, is_below);
        const Split b = split(e[1], guard, is_below);
        a.leaving.insert(a.leaving.end(), b.leaving.begin(), b.leaving.end());
        if (a.leaving.empty()) return none;
        a.staying = !a.staying   ? b.staying
                    : !b.staying ? a.staying
                                 : pool_.binary(Op::Mul, a.staying, b.staying);
        return a;
      }
      case Op::Div: {
        Split a = split(e[0], guard, is_below);
        const Split b = split(e[1], guard, !is_below);
        for (const Factor& f : b.leaving) a.leaving.push_back({f.value, !f.is_divisor, f.shown});
        if (a.leaving.empty()) return none;
        if (b.staying) {
          const Expr above = a.staying ? a.staying : pool_.constant(1, e.dtype());
          a.staying = pool_.binary(Op::Div, above, b.staying);
        }
        return a;
      }
      case Op::Neg: {
        Split a = split(e[0], guard, is_below);
        if (a.leaving.empty() || !a.staying) return none;
        a.staying = pool_.unary(Op::Neg, a.staying);
        return a;
      }
      case Op::Select: {
        const bool is_first = e[2].op() == Op::FloatConst && e[2].number() == 0;
        const bool is_second = e[1].op() == Op::FloatConst && e[1].number() == 0;
        if (!is_first && !is_second) return none;
        // Where the first place is never hidden, the guard hides no row altogether.
        const Guard inside =
            is_first && holds_first(e[0]) ? std::max(guard, Guard::Reads) : Guard::HidesAll;
        Split a = split(is_first ? e[1] : e[2], inside, is_below);
        if (a.leaving.empty()) return none;
        if (!a.staying) a.staying = pool_.constant(1, e.dtype());
        const Expr zero = pool_.constant(0, e.dtype());
        const auto guarded = [&](Expr x) {
          return is_first ? pool_.select(e[0], x, zero) : pool_.select(e[0], zero, x);
        };
        a.staying = guarded(a.staying);
        for (Factor& f : a.leaving) {
          if (f.shown) f.shown = guarded(f.shown);
        }
        return a;
      }
      case Op::Read: {
        const auto it = equations_.find(e.name());
        if (it == equations_.end() || expr::has_reduce(it->second.body)) return none;
        Split a = split(body_at(it->second, e, pool_), guard, is_below);
        return a.leaving.empty() || !a.staying ? none : a;
      }
      default:
        return none;
    }
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  expr::Facts outer_;
  Expr reduction_;
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
  Equations equations_;
  KnownValues values_;
  std::vector<Expr> reduced_;
  int steps_ = 0;
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
