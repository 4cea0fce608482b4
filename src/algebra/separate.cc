// SPDX-License-Identifier: Apache-2.0
#include "algebra/separate.h"

#include <algorithm>
#include <cmath>

#include "algebra/mixed_values.h"
#include "expr/bounds/affine.h"

namespace nautilus::algebra {

using expr::DType;
using expr::Op;

namespace {

constexpr int kMaxFlattened = 10000;

bool is_number(Expr e, double value) {
  return e.op() == Op::FloatConst ? e.number() == value
                                  : e.op() == Op::IntConst && e.is_int(static_cast<int64_t>(value));
}

bool less(const ExpTerm& a, const ExpTerm& b) {
  if (a.is_base2 != b.is_base2) return a.is_base2;
  if (const int c = compare(a.core, b.core)) return c < 0;
  if (a.factor != b.factor) {
    if (!a.factor || !b.factor) return !a.factor;
    if (const int c = compare(a.factor, b.factor)) return c < 0;
  }
  return a.sign < b.sign;
}

// Powers of one atom joined, opposite exponents gone, in an order that depends on content only.
RunningPart normalised(RunningPart p) {
  RunningPart out;
  for (const Power& x : p.powers) {
    auto it = std::find_if(out.powers.begin(), out.powers.end(),
                           [&](const Power& y) { return y.atom == x.atom; });
    if (it == out.powers.end()) {
      out.powers.push_back(x);
    } else {
      it->exponent += x.exponent;
    }
  }
  std::erase_if(out.powers, [](const Power& x) { return x.exponent == 0; });
  std::sort(out.powers.begin(), out.powers.end(),
            [](const Power& a, const Power& b) { return compare(a.atom, b.atom) < 0; });
  for (const ExpTerm& x : p.exponents) {
    ExpTerm opposite = x;
    opposite.sign = -x.sign;
    const auto it = std::find(out.exponents.begin(), out.exponents.end(), opposite);
    it == out.exponents.end() ? out.exponents.push_back(x) : void(out.exponents.erase(it));
  }
  std::sort(out.exponents.begin(), out.exponents.end(), less);
  return out;
}

RunningPart product(const RunningPart& a, const RunningPart& b) {
  RunningPart p = a;
  p.powers.insert(p.powers.end(), b.powers.begin(), b.powers.end());
  p.exponents.insert(p.exponents.end(), b.exponents.begin(), b.exponents.end());
  return normalised(std::move(p));
}

}  // namespace

bool operator==(const RunningPart& a, const RunningPart& b) {
  return a.exponents == b.exponents &&
         std::equal(a.powers.begin(), a.powers.end(), b.powers.begin(), b.powers.end(),
                    [](const Power& x, const Power& y) {
                      return x.atom == y.atom && x.exponent == y.exponent;
                    });
}

uint8_t Separator::class_of(Expr e) {
  if (const auto it = classes_.find(e); it != classes_.end()) return it->second;
  uint8_t c = 0;
  if (running_.contains(e)) {
    c = kRunning;
  } else if (streamed_.contains(e)) {
    c = kStreamed;
  } else {
    for (Expr a : e.args()) c = static_cast<uint8_t>(c | class_of(a));
  }
  classes_.emplace(e, c);
  return c;
}

Expr Separator::times(Expr a, Expr b) {
  if (is_number(a, 1)) return b;
  if (is_number(b, 1)) return a;
  return pool_.binary(Op::Mul, a, b);
}

Separator::Terms Separator::atom(Expr e) { return {{RunningPart{{{e, 1.0}}, {}}, one(e.dtype())}}; }

Separator::Terms Separator::merged(Terms terms) {
  Terms out;
  for (SeparatedTerm& t : terms) {
    auto it = std::find_if(out.begin(), out.end(),
                           [&](const SeparatedTerm& o) { return o.running == t.running; });
    if (it == out.end()) {
      out.push_back(std::move(t));
    } else {
      it->streamed = pool_.binary(Op::Add, it->streamed, t.streamed);
    }
  }
  return out;
}

Separator::Terms Separator::product(const Terms& a, const Terms& b) {
  Terms out;
  for (const SeparatedTerm& x : a) {
    for (const SeparatedTerm& y : b)
      out.push_back({algebra::product(x.running, y.running), times(x.streamed, y.streamed)});
  }
  return merged(std::move(out));
}

Outcome<Separator::Terms> Separator::inverse(Terms terms, Expr e) {
  if (terms.size() != 1)
    return mixed("divisor", "the divisor is a sum of running and streamed values", e);
  SeparatedTerm& t = terms[0];
  for (Power& p : t.running.powers) p.exponent = -p.exponent;
  for (ExpTerm& x : t.running.exponents) x.sign = -x.sign;
  if (!is_number(t.streamed, 1))
    t.streamed = pool_.binary(Op::Div, one(t.streamed.dtype()), t.streamed);
  return terms;
}

Outcome<Separator::Terms> Separator::terms_of(Expr e) {
  if (const auto it = terms_.find(e); it != terms_.end()) return it->second;
  Outcome<Terms> terms = new_terms_of(e);
  terms_.emplace(e, terms);
  return terms;
}

Outcome<Separator::Terms> Separator::new_terms_of(Expr e) {
  const uint8_t c = class_of(e);
  if (!(c & kRunning)) return Terms{{RunningPart{}, e}};
  const bool is_pure = !(c & kStreamed);
  switch (e.op()) {
    case Op::Neg: {
      auto x = terms_of(e[0]);
      if (!x) return x;
      for (SeparatedTerm& t : *x) t.streamed = pool_.unary(Op::Neg, t.streamed);
      return x;
    }
    case Op::Mul:
      return product_of(e);
    case Op::Div:
      return quotient(e);
    case Op::Exp:
    case Op::Exp2: {
      auto x = exponential(e);
      return !x && is_pure ? Outcome<Terms>(atom(e)) : x;
    }
    case Op::Sqrt:
    case Op::Rsqrt:
      return is_pure ? Outcome<Terms>(atom(e)) : root(e);
    case Op::Pow:
      return is_pure ? Outcome<Terms>(atom(e)) : power(e);
    case Op::Select:
      return is_pure ? Outcome<Terms>(atom(e)) : select(e);
    case Op::Cast:
      return is_pure ? Outcome<Terms>(atom(e)) : cast(e);
    case Op::Add:
    case Op::Sub:
      return is_pure ? Outcome<Terms>(atom(e)) : sum(e);
    default:
      if (is_pure) return atom(e);
      return mixed("mixed",
                   "running and streamed values meet in an operator that does not separate", e);
  }
}

Outcome<Separator::Terms> Separator::product_of(Expr e) {
  const auto x = terms_of(e[0]);
  if (!x) return x;
  const auto y = terms_of(e[1]);
  if (!y) return y;
  if (x->size() * y->size() > 32) return mixed("rank", "the product has too many terms", e);
  return product(*x, *y);
}

Outcome<Separator::Terms> Separator::quotient(Expr e) {
  const bool is_pure = !is_streamed(e);
  const auto x = terms_of(e[0]);
  if (!x) return x;
  const auto y = terms_of(e[1]);
  if (!y) return is_pure ? Outcome<Terms>(atom(e)) : y;
  auto inverted = inverse(*y, e[1]);
  if (!inverted) return is_pure ? Outcome<Terms>(atom(e)) : inverted;
  return product(*x, *inverted);
}

Outcome<Separator::Terms> Separator::sum(Expr e) {
  auto x = terms_of(e[0]);
  if (!x) return x;
  auto y = terms_of(e[1]);
  if (!y) return y;
  for (SeparatedTerm& t : *y) {
    if (e.op() == Op::Sub) t.streamed = pool_.unary(Op::Neg, t.streamed);
    (*x).push_back(std::move(t));
  }
  return merged(std::move(*x));
}

Outcome<Separator::Terms> Separator::cast(Expr e) {
  if (!is_float(e[0].dtype()) || !expr::holds_every_value(e.dtype(), e[0].dtype()))
    return mixed("rounding", "a rounding of running and streamed values", e);
  auto x = terms_of(e[0]);
  if (!x) return x;
  for (SeparatedTerm& t : *x) t.streamed = pool_.cast(e.dtype(), t.streamed);
  return x;
}

bool Separator::flatten(Expr e, int sign, Expr factor, Exponent& out) {
  if (++flattened_ > kMaxFlattened) {
    out.why = {"size", "an exponent has too many terms"};
    return false;
  }
  const uint8_t c = class_of(e);
  if (!(c & kRunning)) {
    Expr x = factor ? pool_.binary(Op::Mul, e, factor) : e;
    if (!out.streamed) {
      out.streamed = sign < 0 ? pool_.unary(Op::Neg, x) : x;
    } else {
      out.streamed = pool_.binary(sign < 0 ? Op::Sub : Op::Add, out.streamed, x);
    }
    return true;
  }
  auto fixed_factor = [&](Expr f) { return factor ? times(factor, f) : f; };
  switch (e.op()) {
    case Op::Neg:
      return flatten(e[0], -sign, factor, out);
    case Op::Add:
    case Op::Sub:
      return flatten(e[0], sign, factor, out) &&
             flatten(e[1], e.op() == Op::Sub ? -sign : sign, factor, out);
    case Op::Mul:
      for (const size_t k : {size_t{0}, size_t{1}}) {
        if (class_of(e[k]) == 0) return flatten(e[1 - k], sign, fixed_factor(e[k]), out);
      }
      break;
    case Op::Div:
      if (class_of(e[1]) == 0) {
        const Expr f = pool_.binary(Op::Div, one(e.dtype()), e[1]);
        return flatten(e[0], sign, fixed_factor(f), out);
      }
      break;
    default:
      break;
  }
  if (c & kStreamed) {
    out.why = mixed("mixed_exponent", "an exponent is not a sum of running and streamed parts", e);
    return false;
  }
  out.running.exponents.push_back({e, factor, sign, out.is_base2});
  return true;
}

Outcome<Separator::Terms> Separator::exponential(Expr e) {
  const Expr x = e[0];
  const bool is_mixed = class_of(x) == (kRunning | kStreamed);
  if (is_mixed && x.op() == Op::Select && !is_running(x[0])) {
    // exp(where(p, x, y)) = where(p, exp(x), exp(y))
    return select(pool_.select(x[0], pool_.unary(e.op(), x[1]), pool_.unary(e.op(), x[2])));
  }
  Exponent parts{e.op() == Op::Exp2};
  if (!flatten(x, 1, {}, parts)) return parts.why;
  return Terms{{normalised(std::move(parts.running)),
                parts.streamed ? pool_.unary(e.op(), parts.streamed) : one(e.dtype())}};
}

Outcome<Separator::Terms> Separator::root(Expr e) {
  auto x = terms_of(e[0]);
  if (!x) return x;
  if (x->size() != 1) return mixed("root", "a root of a sum of running and streamed values", e);
  SeparatedTerm& t = (*x)[0];
  for (const Power& p : t.running.powers) {
    const bool is_even = std::fmod(p.exponent, 2) == 0;
    if (!is_even && !signs_.is_nonnegative(p.atom))
      return mixed("root", "a root of a running value whose sign is not known", p.atom);
  }
  const double scale = e.op() == Op::Sqrt ? 0.5 : -0.5;
  RunningPart running;
  for (const Power& p : t.running.powers) {
    // sqrt(a^2) is |a|
    const bool is_square = std::fmod(p.exponent, 2) == 0;
    running.powers.push_back(
        {is_square && !signs_.is_nonnegative(p.atom) ? pool_.unary(Op::Abs, p.atom) : p.atom,
         p.exponent * scale});
  }
  for (const ExpTerm& term : t.running.exponents) {
    ExpTerm half = term;
    const Expr f = pool_.constant(0.5, term.core.dtype());
    half.factor = term.factor ? times(term.factor, f) : f;
    if (scale < 0) half.sign = -half.sign;
    running.exponents.push_back(half);
  }
  return Terms{{normalised(std::move(running)), pool_.unary(e.op(), t.streamed)}};
}

Outcome<Separator::Terms> Separator::power(Expr e) {
  if (e[1].op() != Op::FloatConst)
    return mixed("power", "a power with an exponent that is not constant", e);
  const double n = e[1].number();
  if (n < 1 || n > 4 || n != std::floor(n))
    return mixed("power", "a power of running and streamed values that does not expand", e);
  const auto x = terms_of(e[0]);
  if (!x) return x;
  Terms out = *x;
  for (int k = 1; k < static_cast<int>(n); ++k) {
    if (out.size() * x->size() > 32) return mixed("rank", "the power has too many terms", e);
    out = product(out, *x);
  }
  return out;
}

Outcome<Separator::Terms> Separator::select(Expr e) {
  if (is_running(e[0]))
    return mixed("condition", "a condition compares running values with streamed ones", e[0]);
  auto side = [&](Expr branch) -> Outcome<Terms> {
    if (is_number(branch, 0)) return Terms{};
    return terms_of(branch);
  };
  const auto x = side(e[1]);
  if (!x) return x;
  const auto y = side(e[2]);
  if (!y) return y;
  const Expr zero = pool_.constant(0, e.dtype());
  Terms out;
  for (const SeparatedTerm& t : *x)
    out.push_back({t.running, pool_.select(e[0], t.streamed, zero)});
  for (const SeparatedTerm& t : *y) {
    auto it = std::find_if(out.begin(), out.end(),
                           [&](const SeparatedTerm& o) { return o.running == t.running; });
    if (it == out.end()) {
      out.push_back({t.running, pool_.select(e[0], zero, t.streamed)});
    } else {
      it->streamed = pool_.select(e[0], it->streamed[1], t.streamed);
    }
  }
  return out;
}

Outcome<Separation> Separator::separate(Expr g) {
  if (is_number(g, 0)) return Separation{};
  auto terms = terms_of(g);
  if (!terms) return terms.rejection();
  Separation s;
  for (SeparatedTerm& t : merged(*terms)) s.terms.push_back(std::move(t));
  return s;
}

}  // namespace nautilus::algebra
