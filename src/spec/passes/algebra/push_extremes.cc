// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/push_extremes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "expr/scalar_ops.h"
#include "spec/equations.h"
#include "spec/facts/row_terms.h"
#include "spec/facts/values.h"
#include "spec/facts/waits.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Reducer;

// The reduced operand of a function that keeps or turns the order.
struct Peeled {
  Expr core;
  std::function<Expr(Expr)> around;
  bool is_falling = false;
  bool is_strict = true;
  std::vector<Expr> others;  // other operands of the function
};
// factor * rest, the factor not negative and without the reduced axis.
struct ScaledExtreme {
  Expr factor;  // null: 1
  Expr rest;
};

class ExtremePusher {
 public:
  ExtremePusher(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool),
        facts_(ir::facts_of(program, context.pool)),
        names_(program, context.pool),
        values_(program, context.pool, equations_),
        row_terms_(program, context.pool) {}

  Let equation(const Let& let, std::vector<Let>& before) {
    const Let out = new_equation(let, before);
    for (const Let& b : before) equations_.emplace(b.name, b);
    equations_.emplace(out.name, out);
    return out;
  }

 private:
  static constexpr int kMaxSteps = 500;

  Let new_equation(const Let& let, std::vector<Let>& before) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.init() || r.body().dtype() != DType::F32) return let;
    const bool is_arg = expr::is_arg(r.reducer());
    if (!is_arg && r.reducer() != Reducer::Max && r.reducer() != Reducer::Min) return let;
    reduced_.clear();
    for (size_t k = 0; k < r.axis_count(); ++k) reduced_.push_back(r.axis(k));
    steps_ = 0;
    reducer_ = r.reducer();
    const Peeled p = peeled(r.body(), false);
    if (p.core == r.body() || !is_reduced(p.core) || p.core.dtype() != DType::F32) return let;
    Let out = let;
    std::vector<Expr> axes;
    std::vector<Expr> extents;
    for (size_t k = 0; k < r.axis_count(); ++k) {
      axes.push_back(r.axis(k));
      extents.push_back(r.extent(k));
    }
    const Reducer inside = p.is_falling ? opposite(r.reducer()) : r.reducer();
    const Expr reduction = pool_.reduce(inside, p.core, axes, extents);
    if (is_arg) {
      // A row of NaN alone has no position, and in a row of only -inf it is the first: the removed
      // function must not be what made these values.
      const auto is_tame = [&](Expr e) {
        return values_.is_finite(e) && !row_terms_.may_be_mask(e);
      };
      const bool are_others_tame = std::all_of(p.others.begin(), p.others.end(), is_tame);
      if (p.is_strict && are_others_tame) out.body = reduction;
      return out;
    }
    // If only the core needs this axis, nothing is gained by a rewrite.
    const bool waits = std::any_of(p.others.begin(), p.others.end(),
                                   [&](Expr e) { return waits_for(e, extents, equations_); });
    if (!waits) return let;
    // A row of NaN alone has the extreme of an empty one, which the functions would treat as an
    // element; and the functions may turn an element at the far end into NaN.
    const bool is_max = inside == Reducer::Max;
    if (!values_.is_below_infinity(p.core, is_max ? 1 : -1)) return let;
    Let inner{names_.fresh(fmt::format("{}.{}", let.name.str(), is_max ? "max" : "min")), let.axes,
              DType::F32, reduction};
    const Expr identity =
        pool_.floating(expr::identity(r.reducer(), DType::F32).f, r.body().dtype());
    // NaN elements alone give no extreme.
    Expr value = pool_.binary(r.reducer() == Reducer::Max ? Op::Max : Op::Min,
                              p.around(element(inner, pool_)), identity);
    for (Expr extent : extents) {
      const Expr has_terms = pool_.binary(Op::Ge, extent, pool_.integer(1));
      if (facts_.prove(has_terms) == expr::Truth::True) continue;
      value = pool_.select(pool_.binary(Op::Le, extent, pool_.integer(0)), identity, value);
    }
    before.push_back(std::move(inner));
    out.body = value.dtype() == let.dtype ? value : pool_.cast(let.dtype, value);
    return out;
  }

  static Reducer opposite(Reducer r) {
    switch (r) {
      case Reducer::Max:
        return Reducer::Min;
      case Reducer::Min:
        return Reducer::Max;
      case Reducer::ArgMax:
        return Reducer::ArgMin;
      default:
        return Reducer::ArgMax;
    }
  }

  bool is_reduced(Expr e) const {
    return std::any_of(reduced_.begin(), reduced_.end(),
                       [&](Expr axis) { return expr::depends_on(e, axis); });
  }

  // The body of an element-wise equation at a read; null for other tensors.
  Expr written_out(Expr read) {
    const auto it = equations_.find(read.name());
    if (it == equations_.end() || expr::has_reduce(it->second.body)) return {};
    const Expr e = body_at(it->second, read, pool_);
    return e.dtype() == read.dtype() ? e : Expr();
  }

  // `is_reversed`: functions around it reverse the order.
  Peeled peeled(Expr e, bool is_reversed) {
    const Peeled none{e, [](Expr x) { return x; }, false, true, {}};
    if (!is_float(e.dtype()) || ++steps_ > kMaxSteps) return none;
    const ScaledExtreme s = scaled(e);
    if (s.factor && is_reduced(s.rest)) {
      if (expr::is_arg(reducer_) && !values_.is_positive(s.factor)) return none;
      const Expr f = s.factor;
      return wrapped(
          peeled(s.rest, is_reversed), [this, f](Expr x) { return pool_.binary(Op::Mul, x, f); },
          false, true, f);
    }
    switch (e.op()) {
      case Op::Neg:
        return wrapped(peeled(e[0], !is_reversed),
                       [this](Expr x) { return pool_.unary(Op::Neg, x); }, true, true, {});
      case Op::Add:
      case Op::Sub: {
        const size_t k = is_reduced(e[0]) ? 0 : 1;
        if (is_reduced(e[1 - k])) return none;
        const bool turns = e.op() == Op::Sub && k == 1;
        return wrapped(peeled(e[k], is_reversed != turns), in_place(e, k), turns, true, e[1 - k]);
      }
      case Op::Exp:
      case Op::Exp2:
      case Op::Expm1:
      case Op::Sigmoid:
      case Op::Tanh:
      case Op::Erf:
        return wrapped(peeled(e[0], is_reversed), in_place(e, 0), false, true, {});
      case Op::Sqrt:
      case Op::Log:
      case Op::Log2:
      case Op::Log1p:
        // Of numbers below 0 they are NaN, which a maximum ignores; a minimum would meet them.
        return reducer_ == Reducer::Max && !is_reversed ? rising_outside(e) : none;
      case Op::Floor:
      case Op::Round:
        return wrapped(peeled(e[0], is_reversed), in_place(e, 0), false, false, {});
      case Op::Cast:
        if (e[0].dtype() != DType::F32) return none;
        return wrapped(peeled(e[0], is_reversed), in_place(e, 0), false, false, {});
      case Op::Read: {
        if (!is_reduced(e)) return none;
        const Expr body = written_out(e);
        if (!body) return none;
        const Peeled p = peeled(body, is_reversed);
        return p.core == body ? none : p;
      }
      default:
        return none;
    }
  }

  // A function that rises where it is defined, under a maximum.
  Peeled rising_outside(Expr e) {
    Peeled p = peeled(e[0], false);
    if (p.is_falling) return {e, [](Expr x) { return x; }, false, true, {}};
    return wrapped(std::move(p), in_place(e, 0), false, true, {});
  }

  std::function<Expr(Expr)> in_place(Expr e, size_t k) {
    return [this, e, k](Expr x) {
      std::vector<Expr> args(e.args().begin(), e.args().end());
      args[k] = x;
      return pool_.with_args(e, args);
    };
  }

  static Peeled wrapped(Peeled p, const std::function<Expr(Expr)>& f, bool is_falling,
                        bool is_strict, Expr other) {
    const auto inner = p.around;
    p.around = [inner, f](Expr x) { return f(inner(x)); };
    p.is_falling ^= is_falling;
    p.is_strict &= is_strict;
    if (other) p.others.push_back(other);
    return p;
  }

  ScaledExtreme scaled(Expr e) {
    const ScaledExtreme none{{}, e};
    if (++steps_ > kMaxSteps || !is_reduced(e)) return none;
    switch (e.op()) {
      case Op::Mul: {
        for (const size_t k : {size_t{1}, size_t{0}}) {
          // 0 times an infinite element would be NaN, at the extreme of all places.
          if (is_reduced(e[k]) || !(values_.is_positive(e[k]) || is_root(e[k]))) continue;
          const ScaledExtreme s = scaled(e[1 - k]);
          return {s.factor ? pool_.binary(Op::Mul, s.factor, e[k]) : e[k], s.rest};
        }
        const ScaledExtreme a = scaled(e[0]);
        const ScaledExtreme b = scaled(e[1]);
        if (!a.factor && !b.factor) return none;
        const Expr f = !a.factor   ? b.factor
                       : !b.factor ? a.factor
                                   : pool_.binary(Op::Mul, a.factor, b.factor);
        return {f, pool_.binary(Op::Mul, a.rest, b.rest)};
      }
      case Op::Div: {
        const ScaledExtreme s = scaled(e[0]);
        if (!is_reduced(e[1]) && values_.is_nonnegative(e[1])) {
          const Expr one = pool_.constant(1, e.dtype());
          return {pool_.binary(Op::Div, s.factor ? s.factor : one, e[1]), s.rest};
        }
        return s.factor ? ScaledExtreme{s.factor, pool_.binary(Op::Div, s.rest, e[1])} : none;
      }
      case Op::Neg:
      case Op::Abs: {
        const ScaledExtreme s = scaled(e[0]);
        return s.factor ? ScaledExtreme{s.factor, pool_.unary(e.op(), s.rest)} : none;
      }
      case Op::Read: {
        const Expr body = written_out(e);
        const ScaledExtreme s = body ? scaled(body) : none;
        return s.factor ? s : none;
      }
      default:
        return none;
    }
  }

  // 1 / sqrt(x) is 0 of an infinite x only.
  bool is_root(Expr e) {
    if (e.op() != Op::Read) return e.op() == Op::Rsqrt;
    const Expr body = written_out(e);
    return body && body.op() == Op::Rsqrt;
  }

  expr::ExprPool& pool_;
  expr::Facts facts_;
  TensorNames names_;
  Equations equations_;
  KnownValues values_;
  RowTerms row_terms_;
  std::vector<Expr> reduced_;
  Reducer reducer_ = Reducer::Max;
  int steps_ = 0;
};

}  // namespace

std::optional<ir::Program> push_extremes(const ir::Program& program, ir::PassContext& context) {
  ExtremePusher pusher(program, context);
  return map_equations(program, [&](const Let& let, std::vector<Let>& before) {
    return pusher.equation(let, before);
  });
}

}  // namespace nautilus::spec
