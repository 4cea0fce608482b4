// SPDX-License-Identifier: Apache-2.0
#include "spec/values.h"

#include <algorithm>
#include <cmath>

#include "spec/equations.h"

namespace nautilus::spec {

using expr::Expr;
using expr::Op;
using expr::Reducer;

namespace {

// Equations share their parts; written out as trees they may be too large to look at.
constexpr int kMaxSteps = 2000;

bool is_infinite(Expr e) { return e.op() == Op::FloatConst && std::isinf(e.number()); }

// where(x == number, y, x): x is not the number where it is taken.
bool is_guard(Expr select, bool (*is_number)(Expr)) {
  const Expr c = select[0];
  return c.op() == Op::Eq && c[0] == select[2] && is_number(c[1]);
}
bool is_guard_of_zero(Expr select) {
  return is_guard(select, [](Expr e) { return e.op() == Op::FloatConst && e.number() == 0; });
}

}  // namespace

bool KnownValues::is_positive(Expr e) {
  steps_ = 0;
  return positive(e);
}
bool KnownValues::is_nonnegative(Expr e) {
  steps_ = 0;
  return nonnegative(e);
}
bool KnownValues::is_nonzero(Expr e) {
  steps_ = 0;
  return nonzero(e);
}
bool KnownValues::is_finite(Expr e) {
  steps_ = 0;
  return finite(e);
}

// The body of an element-wise equation at a read; null for other tensors, and for those that are
// stored in fewer bits than computed, where small numbers may become 0.
Expr KnownValues::written_out(Expr read) {
  const auto it = equations_.find(read.name());
  if (it == equations_.end() || expr::has_reduce(it->second.body)) return {};
  const Expr e = body_at(it->second, read, pool_);
  return e.dtype() == read.dtype() ? e : Expr();
}

bool KnownValues::positive(Expr e) {
  if (++steps_ > kMaxSteps) return false;
  if (signs_.is_positive(e)) return true;
  switch (e.op()) {
    case Op::Read: {
      const Expr body = written_out(e);
      return body && positive(body);
    }
    case Op::Mul:
    case Op::Div:
      return positive(e[0]) && positive(e[1]);
    case Op::Add:
      return (positive(e[0]) && nonnegative(e[1])) || (nonnegative(e[0]) && positive(e[1]));
    case Op::Sqrt:
    case Op::Rsqrt:
      return positive(e[0]);
    case Op::Max:
      return positive(e[0]) || positive(e[1]);
    case Op::Select:
      return positive(e[1]) && (positive(e[2]) || (is_guard_of_zero(e) && nonnegative(e[2])));
    default:
      return false;
  }
}

bool KnownValues::nonnegative(Expr e) {
  if (++steps_ > kMaxSteps) return false;
  if (signs_.is_nonnegative(e) || positive(e)) return true;
  switch (e.op()) {
    case Op::Read: {
      const auto it = equations_.find(e.name());
      if (it == equations_.end()) return false;
      const Expr body = it->second.body;
      if (body.op() == Op::Reduce && !body.init()) {
        const Reducer r = body.reducer();
        return (r == Reducer::Sum || r == Reducer::Prod || r == Reducer::Min) &&
               nonnegative(body.body());
      }
      const Expr value = written_out(e);
      return value && nonnegative(value);
    }
    case Op::Mul:
      return e[0] == e[1] || (nonnegative(e[0]) && nonnegative(e[1]));
    case Op::Add:
    case Op::Min:
    case Op::Div:
      return nonnegative(e[0]) && nonnegative(e[1]);
    case Op::Max:
      return nonnegative(e[0]) || nonnegative(e[1]);
    case Op::Sqrt:
    case Op::Rsqrt:
      return true;
    case Op::Cast:
      return is_float(e.dtype()) && is_float(e[0].dtype()) && nonnegative(e[0]);
    case Op::Select:
      return nonnegative(e[1]) && nonnegative(e[2]);
    default:
      return false;
  }
}

bool KnownValues::nonzero(Expr e) {
  if (++steps_ > kMaxSteps) return false;
  if (positive(e)) return true;
  switch (e.op()) {
    case Op::FloatConst:
      return e.number() != 0;
    case Op::Read: {
      const Expr body = written_out(e);
      return body && nonzero(body);
    }
    case Op::Mul:
      return nonzero(e[0]) && nonzero(e[1]);
    case Op::Neg:
    case Op::Abs:
      return nonzero(e[0]);
    case Op::Select:
      return nonzero(e[1]) && (is_guard_of_zero(e) || nonzero(e[2]));
    default:
      return false;
  }
}

bool KnownValues::finite(Expr e) {
  if (++steps_ > kMaxSteps) return false;
  switch (e.op()) {
    case Op::FloatConst:
      return std::isfinite(e.number());
    case Op::IntConst:
    case Op::Var:
    case Op::Sigmoid:
    case Op::Tanh:
    case Op::Erf:
      return true;
    case Op::Exp:
    case Op::Exp2:
      return bounded(e[0]);
    case Op::Read: {
      if (!is_float(e.dtype())) return true;
      const auto it = equations_.find(e.name());
      if (it == equations_.end()) return true;
      const Expr body = it->second.body;
      if (body.op() == Op::Reduce)
        return body.reducer() == Reducer::Sum && (!body.init() || finite(body.init())) &&
               finite(body.body());
      return !expr::has_reduce(body) && finite(body_at(it->second, e, pool_));
    }
    case Op::Cast:
      return !is_float(e[0].dtype()) || finite(e[0]);
    case Op::Div:
      return finite(e[0]) && nonzero(e[1]);
    case Op::Rsqrt:
      return positive(e[0]);
    case Op::Select:
      return finite(e[1]) && (finite(e[2]) || (e[2].op() == Op::Read && is_guard(e, is_infinite)));
    case Op::Neg:
    case Op::Abs:
    case Op::Floor:
    case Op::Round:
    case Op::Sin:
    case Op::Cos:
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Min:
    case Op::Max:
      return std::all_of(e.args().begin(), e.args().end(), [&](Expr x) { return finite(x); });
    default:
      return false;
  }
}

// Finite or -inf, as what a mask leaves: its exponential is finite.
bool KnownValues::bounded(Expr e) {
  if (++steps_ > kMaxSteps) return false;
  switch (e.op()) {
    case Op::FloatConst:
      return !std::isnan(e.number()) && e.number() < HUGE_VAL;
    case Op::Read: {
      const auto it = equations_.find(e.name());
      if (it == equations_.end()) return true;
      const Expr body = it->second.body;
      if (body.op() == Op::Reduce && body.reducer() == Reducer::Max)
        return (!body.init() || bounded(body.init())) && bounded(body.body());
      if (body.op() == Op::Reduce) return finite(e);
      return !expr::has_reduce(body) && bounded(body_at(it->second, e, pool_));
    }
    case Op::Select:
      return bounded(e[1]) && bounded(e[2]);
    case Op::Add:
    case Op::Max:
    case Op::Min:
      return bounded(e[0]) && bounded(e[1]);
    case Op::Sub:
      return bounded(e[0]) && finite(e[1]);
    case Op::Mul:
      return finite(e) || (bounded(e[0]) && finite(e[1]) && positive(e[1])) ||
             (bounded(e[1]) && finite(e[0]) && positive(e[0]));
    default:
      return finite(e);
  }
}

}  // namespace nautilus::spec
