// SPDX-License-Identifier: Apache-2.0
#include "emit/limits.h"

#include <algorithm>
#include <cstdlib>

#include "emit/expression.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"
#include "matile/registers.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using EK = expr::Op;

// registers(e) <= limit, the limit being a thread's.
struct Bound {
  matile::DigitSum registers;
  std::string limit;
};

// The sum of coordinates that a condition compares, at a place of the layout.
int sum_at(const layout::Layout& layout, const std::vector<int64_t>& factors,
           const layout::Place& place) {
  const auto point = layout.coordinates_of(place);
  int64_t sum = 0;
  for (size_t k = 0; k < point.size(); ++k) sum += factors[k] * point[k];
  return static_cast<int>(sum);
}

// Whether all threads and all digits but digit `k` add multiples of n.
bool are_multiples(const matile::Domain& domain, const std::vector<int64_t>& factors,
                   const matile::DigitSum& registers, size_t k, int n) {
  for (size_t other = 0; other < registers.coefficients.size(); ++other) {
    if (other != k && registers.coefficients[other] % n != 0) return false;
  }
  if (registers.base % n != 0) return false;
  for (int warp = 0; warp < domain.layout.extent(layout::Owner::Warp); ++warp) {
    for (int lane = 0; lane < domain.layout.extent(layout::Owner::Lane); ++lane) {
      if (sum_at(domain.layout, factors, {0, warp, lane, 0}) % n != 0) return false;
    }
  }
  return true;
}

// Leaves out a digit d = 0 .. n-1 within whole pieces: where the rest of both sides is a multiple
// of n, `x - d <= y` is `x <= y`, and `x + d <= y - 1` is `x <= y - 1`.
void drop_pieces(const matile::Domain& domain, const std::vector<int64_t>& factors,
                 const expr::Poly& limit, const expr::Divisors& divisors,
                 matile::DigitSum& registers) {
  for (size_t k = 0; k < registers.coefficients.size(); ++k) {
    int& step = registers.coefficients[k];
    if (step != 1 && step != -1) continue;
    const int n = registers.digits[k].extent;
    const auto other = step == 1 ? expr::plus(limit, 1) : limit;
    if (other && expr::is_multiple(*other, n, divisors) &&
        are_multiples(domain, factors, registers, k, n))
      step = 0;
  }
}

std::optional<Bound> bound_of(Expr condition, const LimitScope& scope) {
  const matile::Domain& domain = scope.domain;
  expr::ExprPool& pool = scope.pool;
  auto rest = difference_of(condition);
  if (!rest) return std::nullopt;
  std::vector<int64_t> coefficients;
  for (expr::Name axis : domain.axes) {
    const auto parts = rest->split(pool.index(axis));
    if (!parts || !parts->first.constant().has_value()) {
      if (parts && parts->first.is_zero()) {
        coefficients.push_back(0);
        continue;
      }
      return std::nullopt;
    }
    coefficients.push_back(*parts->first.constant());
    // A limit is computed in 32 bits.
    constexpr int64_t kLargest = 4096;
    if (std::abs(coefficients.back()) > kLargest) return std::nullopt;
    rest = parts->second;
  }
  // The rest belongs to the thread: no coordinate is inside a division or an element.
  for (Expr atom : rest->atoms()) {
    for (expr::Name axis : domain.axes) {
      if (expr::depends_on(atom, pool.index(axis))) return std::nullopt;
    }
  }
  ExpressionNames own = scope.names;
  own.is_value = false;
  std::vector<int64_t> factors;  // on the other side of the comparison
  for (int64_t c : coefficients) factors.push_back(-c);
  Bound bound{matile::fit(domain.layout,
                          [&](int e) {
                            return sum_at(domain.layout, factors, {0, 0, 0, e});
                          }),
              expression(expr::to_expr(pool, *rest), own)};
  drop_pieces(domain, factors, *rest, scope.divisors, bound.registers);
  for (size_t k = 0; k < coefficients.size(); ++k) {
    const std::string thread = matile::thread_coordinate(domain.layout, static_cast<int>(k));
    if (coefficients[k] == 0 || thread == "0") continue;
    const int64_t magnitude = std::abs(coefficients[k]);
    bound.limit += fmt::format(" {} {}({})", coefficients[k] < 0 ? "-" : "+",
                               magnitude == 1 ? "" : fmt::format("{} * ", magnitude), thread);
  }
  return bound;
}

}  // namespace

std::optional<expr::Poly> difference_of(Expr e) {
  if (e.args().size() != 2 || e[0].dtype() != expr::DType::I64) return std::nullopt;
  std::optional<expr::Poly> d;
  switch (e.op()) {
    case EK::Le:
      return expr::difference(e[1], e[0]);
    case EK::Ge:
      return expr::difference(e[0], e[1]);
    case EK::Lt:
      d = expr::difference(e[1], e[0]);
      break;
    case EK::Gt:
      d = expr::difference(e[0], e[1]);
      break;
    default:
      return std::nullopt;
  }
  return d ? expr::plus(*d, -1) : std::nullopt;
}

std::string emit_limits(Expr condition, const LimitScope& scope, const std::string& name,
                        const std::string& e, Writer& out) {
  std::vector<Bound> bounds;
  for (Expr part : expr::conjuncts(condition)) {
    auto bound = bound_of(part, scope);
    if (!bound) return "";
    bounds.push_back(std::move(*bound));
  }
  // Digits in which the comparisons agree stay in the loop; the others index the limits.
  matile::DigitSum common{0, bounds[0].registers.digits, bounds[0].registers.coefficients};
  matile::DigitSum index{0, common.digits, std::vector<int>(common.digits.size(), 0)};
  matile::DigitSum compact;  // the digits of the index alone
  std::vector<size_t> own;
  for (size_t k = 0; k < common.digits.size(); ++k) {
    const bool agrees = std::all_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
      return b.registers.coefficients[k] == common.coefficients[k];
    });
    if (agrees) continue;
    common.coefficients[k] = 0;
    const int stride =
        compact.digits.empty() ? 1 : compact.digits.back().stride * compact.digits.back().extent;
    index.coefficients[k] = stride;
    compact.digits.push_back({stride, common.digits[k].extent});
    own.push_back(k);
  }
  std::string limit;
  for (const Bound& b : bounds) {
    matile::DigitSum mine{-b.registers.base, compact.digits, {}};
    for (size_t k : own) mine.coefficients.push_back(-b.registers.coefficients[k]);
    const std::string shift = mine.text("digit");
    const std::string text = shift == "0" ? b.limit : fmt::format("{} + ({})", b.limit, shift);
    limit = limit.empty() ? text : fmt::format("minimum({}, {})", limit, text);
  }
  if (compact.digits.empty()) {
    out.line("const int {} = {};", name, limit);
    return fmt::format("{} <= {}", common.text(e), name);
  }
  const int count = compact.digits.back().stride * compact.digits.back().extent;
  out.line("int {}[{}];", name, count);
  out.line("UNROLL for (int digit = 0; digit < {}; ++digit) {}[digit] = {};", count, name, limit);
  return fmt::format("{} <= {}[{}]", common.text(e), name, index.text(e));
}

}  // namespace nautilus::emit
