// SPDX-License-Identifier: Apache-2.0
#include "spec/eval_reduction.h"

#include <algorithm>

#include "expr/walk.h"

namespace nautilus::spec {

using expr::Bounded;
using expr::Op;
using expr::Reducer;
using expr::Value;
using ir::Expr;

namespace {

// Roundoff of the coarsest operand rounding the contract licenses in a sum of products: some factor
// is stored in 16 or 8 bits and another one is not, so a kernel may round the other to that storage
// dtype.
double licensed_roundoff(Expr sum_body) {
  std::vector<Expr> factors;
  auto split = [&](auto& self, Expr e) -> void {
    if (e.op() == Op::Mul || e.op() == Op::Div) {
      for (Expr a : e.args()) self(self, a);
    } else {
      factors.push_back(e);
    }
  };
  split(split, sum_body);
  double stored = 0;
  bool has_other = false;
  for (Expr f : factors) {
    const bool is_narrow = f.op() == Op::Cast && f[0].op() == Op::Read && is_float(f[0].dtype()) &&
                           expr::bytes(f[0].dtype()) <= 2;
    if (is_narrow) {
      stored = std::max(stored, expr::unit_roundoff(f[0].dtype()));
    } else {
      has_other |= is_float(f.dtype()) && !expr::tensors_read(f).empty();
    }
  }
  return has_other ? stored : 0;
}

}  // namespace

Reduction::Reduction(Expr reduce, int64_t length, bool is_exact_contract)
    : reducer_(reduce.reducer()),
      dtype_(reduce.body().dtype()),
      length_(length),
      licensed_(reducer_ == Reducer::Sum && !is_exact_contract ? licensed_roundoff(reduce.body())
                                                               : 0) {}

Accumulator Reduction::start(Bounded init) const {
  const double magnitude = reducer_ == Reducer::Prod ? 0 : std::fabs(as_number(init.v));
  return {init.v, init.e, magnitude, 0, -1, -expr::kInf};
}

void Reduction::add_other(Accumulator& acc, Bounded x, int64_t position) const {
  switch (reducer_) {
    case Reducer::Sum:
      acc.e += x.e;
      break;
    case Reducer::Prod: {
      acc.e = acc.e * (std::fabs(as_number(x.v)) + x.e) + std::fabs(as_number(acc.v)) * x.e;
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
        acc = {x.v, 0, 0, 0, -1, 0};
        return;
      }
      acc.e = std::max(acc.e, x.e);
      break;
    }
    case Reducer::ArgMax:
    case Reducer::ArgMin:
      return add_arg(acc, x, position);
  }
  const Value pair[2] = {acc.v, x.v};
  acc.v = expr::apply(expr::combiner(reducer_), dtype_, dtype_, pair);
}

void Reduction::add_arg(Accumulator& acc, Bounded x, int64_t position) const {
  if (std::isnan(as_number(x.v))) return;
  if (expr::is_better(reducer_, dtype_, x.v, acc.v, acc.position < 0)) {
    // What stands before the new best wins a tie, so reaching it is enough: the next number up.
    if (acc.position >= 0)
      acc.rival = std::nextafter(std::max(acc.rival, oriented(acc.v) + acc.e), expr::kInf);
    acc.v = x.v;
    acc.e = x.e;
    acc.position = position;
  } else {
    acc.rival = std::max(acc.rival, oriented(x.v) + x.e);
  }
}

Bounded Reduction::finish(const Accumulator& acc) const {
  if (is_arg(reducer_)) {
    const double best = oriented(acc.v) - acc.e;
    // The first of equal exact values wins in every kernel, so an exact tie behind it is no rival.
    const bool is_certain =
        acc.position < 0 || acc.rival < best || (acc.e == 0 && acc.rival == best);
    return {expr::int_value(acc.position), is_certain ? 0 : expr::kInf};
  }
  if (!is_float(dtype_)) return {acc.v, acc.e};
  double e = acc.e;
  if (reducer_ == Reducer::Sum && acc.sum_abs > 0) {
    // A kernel may sum in any order, one term after the other included.
    const double steps = static_cast<double>(std::max<int64_t>(length_, 1)) + 1;
    e += steps * expr::rounding(dtype_, acc.v.f, acc.sum_abs) + licensed_ * acc.sum_abs;
  } else if (reducer_ == Reducer::Prod) {
    e += static_cast<double>(length_) * expr::rounding(dtype_, acc.v.f, std::fabs(acc.v.f));
    const double range = dtype_ == expr::DType::F64 ? 1022 : 126;
    if (acc.sum_abs > range || acc.log_small < -range) e = expr::kInf;
  }
  // Finite terms cannot change an infinite sum; what makes it infinite is exact or has no bound.
  if (!std::isfinite(acc.v.f)) return {acc.v, acc.e == expr::kInf ? expr::kInf : 0};
  return {acc.v, std::isnan(e) ? expr::kInf : e};
}

}  // namespace nautilus::spec
