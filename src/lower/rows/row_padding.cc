// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_padding.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>

#include "expr/scalar_ops.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;
using Kind = RowStatement::Kind;

// A number that is known, or of which it is known that it is not -inf. (A NaN among the numbers of
// a row makes the terms inside the row NaN as well, so it need not be excluded.)
struct Known {
  bool is_number = false;
  double number = 0;
  bool is_above_bottom = false;
};

class Outside {
 public:
  Outside(double padding, const std::function<Expr(Expr)>& element,
          const std::function<bool(Expr)>& is_padded, const std::function<Expr(Expr)>& number)
      : padding_(padding), element_(element), is_padded_(is_padded), number_(number) {}

  Known of(Expr e) {
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    Known k = compute(e);
    if (k.is_number && std::isnan(k.number)) k = {};
    if (k.is_number) k.is_above_bottom = k.number != -std::numeric_limits<double>::infinity();
    memo_.emplace(e, k);
    return k;
  }

 private:
  static Known exactly(double x) { return {true, x, false}; }

  Known compute(Expr e) {
    if (!expr::is_float(e.dtype())) return {};
    switch (e.op()) {
      case EK::FloatConst:
        return exactly(e.number());
      case EK::Cast:
        return of(e[0]);
      case EK::Read: {
        if (const Expr inner = element_(e)) return of(inner);
        if (is_padded_(e)) return exactly(padding_);
        const Expr number = number_(e);
        return number ? Known{false, 0, of(number).is_above_bottom} : Known{};
      }
      case EK::Select:
        return {false, 0, excludes_bottom(e)};
      case EK::Neg: {
        const Known x = of(e[0]);
        return x.is_number ? exactly(-x.number) : Known{};
      }
      case EK::Add:
      case EK::Sub:
      case EK::Mul:
      case EK::Min:
      case EK::Max:
        return binary(e.op(), of(e[0]), of(e[1]));
      case EK::Exp:
      case EK::Exp2:
      case EK::Abs: {
        const Known x = of(e[0]);
        if (!x.is_number) return {};
        const expr::Value v = expr::float_value(x.number);
        return exactly(expr::apply(e.op(), e.dtype(), e.dtype(), &v).f);
      }
      default:
        return {};
    }
  }

  static Known binary(EK op, Known x, Known y) {
    if (x.is_number && y.is_number) {
      const expr::Value v[2] = {expr::float_value(x.number), expr::float_value(y.number)};
      return exactly(expr::apply(op, expr::DType::F32, expr::DType::F32, v).f);
    }
    const double bottom = -std::numeric_limits<double>::infinity();
    // -inf - y, where y is not -inf.
    if (op == EK::Sub && x.is_number && x.number == bottom && y.is_above_bottom)
      return exactly(bottom);
    // Scaled by a positive number.
    const bool is_scaled = op == EK::Mul && y.is_number && y.number > 0 && std::isfinite(y.number);
    return {false, 0, is_scaled && x.is_above_bottom};
  }

  // where(y == -inf, c, y)
  static bool excludes_bottom(Expr e) {
    const Expr c = e[0];
    return c.op() == EK::Eq && c[0] == e[2] && c[1].op() == EK::FloatConst &&
           c[1].number() == -std::numeric_limits<double>::infinity() &&
           e[1].op() == EK::FloatConst && std::isfinite(e[1].number());
  }

  double padding_;
  const std::function<Expr(Expr)>& element_;
  const std::function<bool(Expr)>& is_padded_;
  const std::function<Expr(Expr)>& number_;
  std::unordered_map<Expr, Known> memo_;
};

// `element`: the value of a read that is computed again, null for others. `is_padded`: the read
// gives the padding. `number`: the value of a number of the row that a read means, or null.
bool is_identity_outside(Expr value, expr::Reducer reducer, double padding,
                         const std::function<Expr(Expr)>& element,
                         const std::function<bool(Expr)>& is_padded,
                         const std::function<Expr(Expr)>& number) {
  const Known k = Outside(padding, element, is_padded, number).of(value);
  return k.is_number && k.number == expr::identity(reducer, expr::DType::F32).f;
}

}  // namespace

bool vanishes_outside(const RowStatement& s, double padding, const RowScope& scope) {
  // With the group's elements written out.
  std::map<std::string, Expr> elements;
  for (const RowStatement& t : scope.group.statements) {
    if (t.target == s.target) break;
    if (t.kind == Kind::Element) elements[std::string(t.target.str())] = t.value;
  }
  return is_identity_outside(
      s.value, s.reducer, padding,
      [&](Expr read) -> Expr {
        const auto it = elements.find(std::string(read.name().str()));
        return it == elements.end() ? Expr() : it->second;
      },
      [&](Expr read) { return scope.is_along_row(read); },
      [&](Expr read) -> Expr {
        for (const RowStatement& t : scope.group.statements) {
          if (t.target == read.name() && t.kind == Kind::Number) return t.value;
        }
        return {};
      });
}

double choose_padding(const RowScope& scope) {
  int best = -1;
  double padding = 0;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double candidate : {0.0, -infinity, infinity}) {
    int count = 0;
    for (const RowStatement& s : scope.group.statements)
      count += s.kind == Kind::Reduction && vanishes_outside(s, candidate, scope) ? 1 : 0;
    if (count <= best) continue;
    best = count;
    padding = candidate;
  }
  return padding;
}

}  // namespace nautilus::lower
