// SPDX-License-Identifier: Apache-2.0
// One reduction of the evaluator: values in index order, and the bound for a kernel's result.
//
//   sum    K + 1 roundings of the sum of magnitudes (K terms, any order), plus one rounding of an
//          operand to the storage dtype of the other where the numerics contract licenses it, or
//          roundings of f32 operands that `numerics bf16` and `tf32` license; 2^-9 of the sum of
//          magnitudes where both operands are elements of 8-bit floats
//   prod   K roundings; unlimited if some order of the factors leaves the dtype's range
//   max    the largest bound of a term; argmax is certain if no other term can reach the best one
#pragma once

#include "expr/error_bound.h"
#include "ir/decl.h"

namespace nautilus::spec {

// State of one output element while its reduction runs.
struct Accumulator {
  expr::Value v;
  double e = 0;          // bounds brought by the terms
  double sum_abs = 0;    // sum: magnitudes of the terms; prod: log2 of all factors above 1
  double squares = 0;    // sum: of the magnitudes
  double log_small = 0;  // prod: log2 of all factors below 1
  int64_t position = -1;
  double rival = -expr::kInf;  // argmax, argmin: the best that any other element could reach
};

// Roundoff of the coarsest operand roundings the contract licenses in a sum of products; 0: none.
double licensed_roundoff(ir::Expr reduce, ir::Expr body,
                         ir::Rounding contract = ir::Rounding::Licensed);

class Reduction {
 public:
  Reduction(ir::Expr reduce, int64_t length, ir::Rounding contract);

  Accumulator start(expr::Bounded init) const;
  void add(Accumulator& acc, expr::Bounded x, int64_t position) const {
    if (reducer_ == expr::Reducer::Sum && is_float(dtype_)) {
      add_term(acc, x, std::fabs(x.v.f));
    } else {
      add_other(acc, x, position);
    }
  }
  // A term of a sum that may be computed as several sums, with the magnitudes of its parts.
  void add_term(Accumulator& acc, expr::Bounded x, double magnitude) const {
    acc.e += x.e;
    acc.sum_abs += magnitude;
    acc.squares += magnitude * magnitude;
    acc.v.f += x.v.f;
  }
  // Adds an element that precedes all added ones, in a reduction that runs from the end.
  void add_before(Accumulator& acc, expr::Bounded x, int64_t position) const;
  bool is_licensed() const { return licensed_ + coarse_ > 0; }
  expr::Bounded finish(const Accumulator& acc) const { return finish(acc, length_); }
  // The result of this many terms.
  expr::Bounded finish(const Accumulator& acc, int64_t terms) const;
  // The expected error of a float reduction if its roundings are independent of each other.
  double typical_error(const Accumulator& acc) const { return typical_error(acc, length_); }
  double typical_error(const Accumulator& acc, int64_t terms) const;

 private:
  void add_other(Accumulator& acc, expr::Bounded x, int64_t position) const;
  // `is_behind`: the element follows the earlier ones, which win ties; otherwise it wins ties.
  void add_arg(Accumulator& acc, expr::Bounded x, int64_t position, bool is_behind) const;
  double as_number(expr::Value v) const {
    return is_float(dtype_) ? v.f : static_cast<double>(v.i);
  }
  // Larger is better, for argmin too.
  double oriented(expr::Value v) const {
    return reducer_ == expr::Reducer::ArgMin ? -as_number(v) : as_number(v);
  }

  expr::Reducer reducer_;
  expr::DType dtype_;
  int64_t length_;
  double licensed_;
  double coarse_;
};

}  // namespace nautilus::spec
