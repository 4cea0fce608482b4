// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/values.h"

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

bool is_infinite(Expr e, int sign) {
  return e.op() == Op::FloatConst && std::isinf(e.number()) && (e.number() > 0) == (sign > 0);
}

// where(x == number, y, x): x is not the number where it is chosen.
bool is_guard(Expr select, bool (*is_number)(Expr)) {
  const Expr c = select[0];
  return c.op() == Op::Eq && c[0] == select[2] && is_number(c[1]);
}
bool is_guard_of_zero(Expr select) {
  return is_guard(select, [](Expr e) { return e.op() == Op::FloatConst && e.number() == 0; });
}

// where(x == sign * inf, y, x)
bool is_guard_of_infinity(Expr select, int sign) {
  const Expr c = select[0];
  return c.op() == Op::Eq && c[0] == select[2] && is_infinite(c[1], sign);
}

}  // namespace

KnownValues::KnownValues(const ir::Program& program, expr::ExprPool& pool,
                         const Equations& equations)
    : pool_(pool), equations_(equations), signs_(program) {
  const auto look = [&](Expr e) {
    if (e.args().size() != 2) return;
    for (const int sign : {1, -1}) {
      for (const size_t k : {size_t{0}, size_t{1}}) {
        const Expr asked = e[k].op() == Op::Cast ? e[k][0] : e[k];
        const Expr limit = e[1 - k].op() == Op::Cast ? e[1 - k][0] : e[1 - k];
        if (asked.op() == Op::Read && is_infinite(limit, sign))
          (sign > 0 ? asked_high_ : asked_low_).insert(asked.name());
      }
    }
  };
  for (const ir::Op& op : program.body) {
    if (const auto* let = op.get<Let>()) expr::for_each(let->body, look);
  }
}

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
bool KnownValues::is_below_infinity(Expr e, int sign) {
  steps_ = 0;
  return bounded(e, sign);
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
  if (signs_.is_given_positive(e)) return true;
  switch (e.op()) {
    case Op::Read: {
      const Expr body = written_out(e);
      return body && positive(body);
    }
    case Op::Mul:
    case Op::Min:
      return positive(e[0]) && positive(e[1]);
    // A positive number divided by an infinite one is 0.
    case Op::Div:
      return positive(e[0]) && positive(e[1]) && finite(e[1]);
    case Op::Add:
      return (positive(e[0]) && nonnegative(e[1])) || (nonnegative(e[0]) && positive(e[1]));
    case Op::Sqrt:
      return positive(e[0]);
    case Op::Rsqrt:
      return positive(e[0]) && finite(e[0]);
    case Op::Max:
      return positive(e[0]) || positive(e[1]);
    case Op::Select:
      return positive(e[1]) && (positive(e[2]) || (is_guard_of_zero(e) && nonnegative(e[2])));
    case Op::FloatConst:
    case Op::Cast:
      return signs_.is_positive(e);
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
    case Op::Log1p:
    case Op::Expm1:
      return nonnegative(e[0]);
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
    case Op::Expm1:
      return bounded(e[0], 1);
    case Op::Log1p:
      return finite(e[0]) && nonnegative(e[0]);
    case Op::Read: {
      if (!is_float(e.dtype())) return true;
      const auto it = equations_.find(e.name());
      if (it == equations_.end())
        return !asked_low_.contains(e.name()) && !asked_high_.contains(e.name());
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
      return finite(e[1]) && (finite(e[2]) || (is_guard_of_infinity(e, -1) && bounded(e[2], 1)) ||
                              (is_guard_of_infinity(e, 1) && bounded(e[2], -1)));
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

// Finite or -inf, as what a mask leaves: its exponential is finite. With sign -1: finite or inf.
bool KnownValues::bounded(Expr e, int sign) {
  if (++steps_ > kMaxSteps) return false;
  const Reducer extreme = sign > 0 ? Reducer::Max : Reducer::Min;
  switch (e.op()) {
    case Op::FloatConst:
      return !std::isnan(e.number()) && !is_infinite(e, sign);
    case Op::Read: {
      const auto it = equations_.find(e.name());
      if (it == equations_.end()) return !(sign > 0 ? asked_high_ : asked_low_).contains(e.name());
      const Expr body = it->second.body;
      if (body.op() == Op::Reduce && body.reducer() == extreme)
        return (!body.init() || bounded(body.init(), sign)) && bounded(body.body(), sign);
      if (body.op() == Op::Reduce) return finite(e);
      return !expr::has_reduce(body) && bounded(body_at(it->second, e, pool_), sign);
    }
    case Op::Select:
      return bounded(e[1], sign) && bounded(e[2], sign);
    case Op::Neg:
      return bounded(e[0], -sign);
    case Op::Add:
    case Op::Max:
    case Op::Min:
      return bounded(e[0], sign) && bounded(e[1], sign);
    case Op::Sub:
      return bounded(e[0], sign) && finite(e[1]);
    case Op::Mul:
      return finite(e) || (bounded(e[0], sign) && finite(e[1]) && positive(e[1])) ||
             (bounded(e[1], sign) && finite(e[0]) && positive(e[0]));
    default:
      return finite(e);
  }
}

}  // namespace nautilus::spec
