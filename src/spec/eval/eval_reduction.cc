// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval_reduction.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "algebra/contraction.h"
#include "algebra/exact_halves.h"
#include "expr/walk.h"
#include "spec/passes/operands/product_operands.h"

namespace nautilus::spec {

using expr::Bounded;
using expr::Op;
using expr::Reducer;
using expr::Value;
using ir::Expr;

namespace {

// Of sums of 8-bit floats: 1.3e-4 of the root of the sum of squares was measured.
constexpr double kWorstToTypical = 32;

// Whether every factor has all axes that any of them has, at plain places: no product of matrices,
// whatever becomes of its axes.
bool is_elementwise(const std::vector<Expr>& operands) {
  const auto axes = expr::free_vars(operands[0]);
  return std::all_of(operands.begin(), operands.end(), [&](Expr f) {
    const auto own = expr::free_vars(f);
    return has_plain_places(f) &&
           std::is_permutation(own.begin(), own.end(), axes.begin(), axes.end());
  });
}

// The most that `of` gives for a term of a sum, or for an operand of a choice; nothing for others.
template <class F>
std::optional<double> most_of_terms(Expr body, F of) {
  const bool is_select = body.op() == Op::Select;
  if (!is_select && body.op() != Op::Add && body.op() != Op::Sub && body.op() != Op::Neg)
    return std::nullopt;
  double most = 0;
  for (size_t k = is_select ? 1 : 0; k < body.args().size(); ++k)
    most = std::max(most, of(body[k]));
  return most;
}

// What the contract allows the sum of two elements of 8-bit floats, as a share of the magnitudes of
// its terms: the matrix unit keeps 13 bits of the largest number of an instruction, and sums of 128
// terms are added up from 0. Alignment could lose 2^-6 at worst, if every term lost all that it can
// with the same sign; measured are 2^-10.6 for data of one sign, and less for others.
// Other factors may be scales. A sum of several products is as many sums.
double coarseness(Expr reduce, Expr body) {
  if (body.tree_size() > 4096) return 0;
  if (const auto most = most_of_terms(body, [&](Expr e) { return coarseness(reduce, e); }))
    return *most;
  std::vector<Expr> operands;
  for (Expr f : algebra::factors(body)) {
    bool is_summed = false;
    for (size_t k = 0; k < reduce.axis_count(); ++k)
      is_summed |= expr::depends_on(f, reduce.axis(k));
    const Expr e = algebra::element_of(f);
    if (is_summed && e && expr::is_float(e.dtype()) && expr::bytes(e.dtype()) == 1)
      operands.push_back(f);
  }
  return operands.size() == 2 && !is_elementwise(operands) ? 0x1p-9 : 0;
}

std::vector<Expr> factors_and_divisors(Expr body) {
  std::vector<Expr> factors;
  auto split = [&](auto& self, Expr e) -> void {
    if (e.op() == Op::Mul || e.op() == Op::Div) {
      for (Expr a : e.args()) self(self, a);
    } else {
      factors.push_back(e);
    }
  };
  split(split, body);
  return factors;
}

// What a licence for f32 operands allows in a product of these factors: both operands of a product
// are rounded. More than two factors may be products of products (nest_sums), each with its own.
double roundoff_of_f32(const std::vector<Expr>& operands, size_t rounded, ir::Rounding contract) {
  if (operands.size() < 2 || is_elementwise(operands)) return 0;
  const size_t roundings = operands.size() == 2 ? rounded : 2 * (operands.size() - 1);
  return std::pow(1 + ir::operand_roundoff(contract), static_cast<double>(roundings)) - 1;
}

}  // namespace

// Some factor is stored in 16 or 8 bits, cast to them, or held by them exactly, and a kernel may
// round the other operand to that storage dtype, or to bf16 next to 8 bits: another factor that is
// not, the product of two others, or one that is stored in another 16-bit dtype. A sum of several
// products is as many sums.
double licensed_roundoff(Expr reduce, Expr body, ir::Rounding contract) {
  if (body.tree_size() > 4096) return 0;
  if (const auto most =
          most_of_terms(body, [&](Expr e) { return licensed_roundoff(reduce, e, contract); }))
    return *most;
  double stored = 0;
  double stored_half = 0;  // in 16 bits
  int narrow = 0;
  bool has_other = false;
  std::vector<Expr> summed;  // factors with an axis of the sum
  size_t summed_f32 = 0;     // of those, the ones that 16 bits do not hold
  bool is_mixed = false;
  for (Expr f : factors_and_divisors(body)) {
    const bool is_narrow = f.op() == Op::Cast && (f[0].op() == Op::Read || f[0].op() == Op::Cast) &&
                           is_float(f[0].dtype()) && expr::bytes(f[0].dtype()) <= 2;
    const algebra::ExactHalves held = is_narrow ? algebra::ExactHalves{} : algebra::exact_halves(f);
    // Factors of the position alone are part of an operand; others leave the sum.
    bool is_summed = false;
    for (size_t k = 0; k < reduce.axis_count(); ++k)
      is_summed |= expr::depends_on(f, reduce.axis(k));
    const bool is_operand = is_summed || !expr::tensors_read(f).empty();
    if (is_summed) summed.push_back(f);
    summed_f32 += is_summed && !held.any() && !is_narrow && f.dtype() == expr::DType::F32 ? 1 : 0;
    if (held.any()) {
      // As if it were stored in the 16 bits that hold it. An integer licenses nothing by itself,
      // but its product with another factor has more digits.
      narrow += is_operand ? 1 : 0;
      if (!held.is_stored_float) continue;
      const double roundoff = expr::unit_roundoff(held.choose(expr::DType::BF16));
      stored = std::max(stored, roundoff);
      is_mixed |= stored_half != 0 && stored_half != roundoff;
      stored_half = std::max(stored_half, roundoff);
    } else if (is_narrow) {
      // Next to 8 bits, which 16 hold exactly, other operands are rounded to 16.
      const bool is_byte = expr::bytes(f[0].dtype()) < 2;
      const double roundoff = expr::unit_roundoff(is_byte ? expr::DType::BF16 : f[0].dtype());
      stored = std::max(stored, roundoff);
      ++narrow;
      if (is_byte) continue;
      is_mixed |= stored_half != 0 && stored_half != roundoff;
      stored_half = std::max(stored_half, roundoff);
    } else {
      has_other |= is_float(f.dtype()) && is_operand;
    }
  }
  if (summed_f32 > 0) stored = std::max(stored, roundoff_of_f32(summed, summed_f32, contract));
  if (has_other) return stored;
  return is_mixed || narrow > 2 ? stored_half : 0;
}

Reduction::Reduction(Expr reduce, int64_t length, ir::Rounding contract)
    : reducer_(reduce.reducer()),
      dtype_(reduce.body().dtype()),
      length_(length),
      licensed_(reducer_ == Reducer::Sum && contract != ir::Rounding::Exact
                    ? licensed_roundoff(reduce, reduce.body(), contract)
                    : 0),
      coarse_(reducer_ == Reducer::Sum && contract != ir::Rounding::Exact &&
                      dtype_ == expr::DType::F32
                  ? coarseness(reduce, reduce.body())
                  : 0) {}

Accumulator Reduction::start(Bounded init) const {
  const bool is_extreme = reducer_ == Reducer::Max || reducer_ == Reducer::Min;
  if (is_extreme && is_float(dtype_) && std::isnan(init.v.f))
    init = {expr::identity(reducer_, dtype_), 0};  // ignored, as any operand that is NaN
  const double magnitude = reducer_ == Reducer::Prod ? 0 : std::fabs(as_number(init.v));
  return {init.v, init.e, magnitude, magnitude * magnitude, 0, -1, -expr::kInf};
}

void Reduction::add_other(Accumulator& acc, Bounded x, int64_t position) const {
  switch (reducer_) {
    case Reducer::Sum:
      acc.e += x.e;
      break;
    case Reducer::Prod: {
      acc.e = (acc.e != 0 ? acc.e * (std::fabs(as_number(x.v)) + x.e) : 0) +
              (x.e != 0 ? std::fabs(as_number(acc.v)) * x.e : 0);
      if (std::isnan(acc.e)) acc.e = expr::kInf;  // 0 times what has no bound
      // Another order may multiply all large or all small factors first.
      const double magnitude = std::fabs(as_number(x.v));
      if (magnitude > 1) acc.sum_abs += std::log2(magnitude);
      if (magnitude < 1 && magnitude > 0) acc.log_small += std::log2(magnitude);
      break;
    }
    case Reducer::Max:
    case Reducer::Min:
      acc.e = std::max(acc.e, x.e);
      break;
    case Reducer::Any:  // one certain true decides
    case Reducer::All: {
      const auto decisive = static_cast<int64_t>(reducer_ == Reducer::Any);
      if (acc.v.i == decisive && acc.e == 0) return;
      if (x.v.i == decisive && x.e == 0) {
        acc = {x.v, 0, 0, 0, 0, -1, 0};
        return;
      }
      acc.e = std::max(acc.e, x.e);
      break;
    }
    case Reducer::ArgMax:
    case Reducer::ArgMin:
      return add_arg(acc, x, position, true);
  }
  const Value pair[2] = {acc.v, x.v};
  acc.v = expr::apply(expr::combiner(reducer_), dtype_, dtype_, pair);
}

void Reduction::add_before(Accumulator& acc, Bounded x, int64_t position) const {
  if (is_arg(reducer_))
    add_arg(acc, x, position, false);
  else
    add(acc, x, position);
}

void Reduction::add_arg(Accumulator& acc, Bounded x, int64_t position, bool is_behind) const {
  // How far an element may reach; one without a bound, an infinity among them, anywhere.
  const auto reach_of = [&](expr::Value v, double e) {
    return e == expr::kInf ? expr::kInf : oriented(v) + e;
  };
  // An element before the best one wins a tie, so it only has to reach it: the next number up.
  // Above an infinity there is none; NaN makes every position uncertain.
  const auto before = [](double reach) {
    return reach < expr::kInf ? std::nextafter(reach, expr::kInf) : std::nan("");
  };
  if (std::isnan(as_number(x.v))) {
    // It does not count if it is certainly NaN; otherwise it may be the best one.
    if (x.e != 0) acc.rival = std::nan("");
    return;
  }
  const bool is_first = acc.position < 0;
  const bool is_best = is_behind
                           ? expr::is_better(reducer_, dtype_, x.v, acc.v, is_first)
                           : is_first || !expr::is_better(reducer_, dtype_, acc.v, x.v, false);
  if (!is_best) {
    const double reach = reach_of(x.v, x.e);
    acc.rival = std::max(acc.rival, is_behind ? reach : before(reach));
    return;
  }
  if (!is_first) {
    const double reach = std::max(acc.rival, reach_of(acc.v, acc.e));
    acc.rival = is_behind ? before(reach) : reach;
  }
  acc.v = x.v;
  acc.e = x.e;
  acc.position = position;
}

Bounded Reduction::finish(const Accumulator& acc, int64_t terms) const {
  if (is_arg(reducer_)) {
    const double best = oriented(acc.v) - acc.e;
    // The first of equal exact values wins in every kernel, so a later exact tie cannot win.
    const bool is_certain =
        acc.position < 0 || acc.rival < best || (acc.e == 0 && acc.rival == best);
    return {expr::int_value(acc.position), is_certain ? 0 : expr::kInf};
  }
  if (!is_float(dtype_)) return {acc.v, acc.e};
  double e = acc.e;
  if (reducer_ == Reducer::Sum && acc.sum_abs > 0) {
    // A kernel may sum in any order, one term after the other included.
    const double steps = static_cast<double>(std::max<int64_t>(terms, 1)) + 1;
    e += steps * expr::rounding(dtype_, acc.v.f, acc.sum_abs) + (licensed_ + coarse_) * acc.sum_abs;
  } else if (reducer_ == Reducer::Prod) {
    e += static_cast<double>(terms) * expr::rounding(dtype_, acc.v.f, std::fabs(acc.v.f));
    const double range = dtype_ == expr::DType::F64 ? 1022 : 126;
    if (acc.sum_abs > range || acc.log_small < -range) e = expr::kInf;
  }
  // Finite terms cannot change an infinite sum; what makes it infinite is exact or has no bound.
  if (!std::isfinite(acc.v.f)) return {acc.v, acc.e == expr::kInf ? expr::kInf : 0};
  return {acc.v, std::isnan(e) ? expr::kInf : e};
}

double Reduction::typical_error(const Accumulator& acc, int64_t terms) const {
  if (!std::isfinite(acc.v.f)) return 0;
  const double steps = std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)) + 1);
  if (reducer_ == Reducer::Sum && acc.sum_abs > 0)
    return steps * expr::rounding(dtype_, acc.v.f, acc.sum_abs) +
           (licensed_ + coarse_ / kWorstToTypical) * std::sqrt(acc.squares);
  if (reducer_ == Reducer::Prod) return steps * expr::rounding(dtype_, acc.v.f, std::fabs(acc.v.f));
  return 0;
}

}  // namespace nautilus::spec
