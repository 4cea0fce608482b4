// SPDX-License-Identifier: Apache-2.0
//
// Every row of rules.def holds on its whole domain, is smaller on its right side, and is reached by
// the simplifier. The checker itself is tested with rows that are wrong in small ways.
#include "expr/rules/rules.h"

#include <limits>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "expr/expr_test_util.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"

namespace nautilus::expr {
namespace {

constexpr double kHuge = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<Expr> variables_of(const Rule& rule) {
  std::vector<Expr> out;
  for (Expr side : {rule.left, rule.right, rule.condition}) {
    if (!side) continue;
    for (Expr v : free_vars(side)) {
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    }
  }
  return out;
}

class Checker {
 public:
  Checker(const RuleText& text, DType dtype)
      : text_(text), dtype_(dtype), rule_(parse_rule(pool_, text, dtype)) {}

  // Empty if the row holds at every point tried; otherwise the first point where it fails.
  std::string counterexample() {
    small_points();
    if (failure_.empty()) extreme_points();
    if (failure_.empty()) random_points();
    return failure_;
  }

  int64_t points() const { return points_; }

 private:
  void small_points() {
    std::vector<Value> values;
    if (is_float(dtype_)) {
      for (double v : {0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0.1, 1e-3, 16777217.0, 3e38, 1e-40, 1.2e-38,
                       kHuge, kTiny, kInfinity}) {
        values.push_back(float_value(v));
        values.push_back(float_value(-v));
      }
      values.push_back(float_value(kNan));
    } else if (dtype_ == DType::Bool) {
      values = {int_value(0), int_value(1)};
    } else {
      for (int64_t v = -8; v <= 8; ++v) values.push_back(int_value(v));
    }
    all_points(values);
  }

  void extreme_points() {
    if (!is_int(dtype_)) return;
    std::vector<Value> values;
    for (int64_t d : {0, 1, 2, 3}) {
      values.push_back(int_value(int_min(dtype_) + d));
      values.push_back(int_value(int_max(dtype_) - d));
      values.push_back(int_value(d));
      values.push_back(int_value(-d));
    }
    all_points(values);
  }

  void random_points() {
    Random random(std::hash<std::string_view>()(text_.name));
    const auto variables = variables_of(rule_);
    for (int k = 0; k < 20000 && failure_.empty(); ++k) {
      Point point;
      for (Expr v : variables) {
        point[v] = is_float(dtype_) ? float_value(std::bit_cast<double>(random.bits()))
                                    : int_value(wrap_to(dtype_, random.any_size()));
      }
      check(point);
    }
  }

  void all_points(const std::vector<Value>& values) {
    const auto variables = variables_of(rule_);
    std::vector<size_t> digits(variables.size(), 0);
    Point point;
    while (failure_.empty()) {
      for (size_t i = 0; i < variables.size(); ++i) point[variables[i]] = values[digits[i]];
      check(point);
      size_t i = 0;
      while (i < digits.size() && ++digits[i] == values.size()) digits[i++] = 0;
      if (i == digits.size()) return;
    }
  }

  void check(const Point& point) {
    if (rule_.condition && value_at(rule_.condition, point).i == 0) return;
    for (Arithmetic a : {Arithmetic::AsIs, Arithmetic::RoundToDType}) {
      if (a == Arithmetic::RoundToDType && !is_float(dtype_)) break;
      // Only the domain `index` may assume that its left side does not overflow.
      if (text_.domain == Domain::index &&
          !try_value_at(rule_.left, point, Arithmetic::WithoutOverflow)) {
        return;
      }
      ++points_;
      const Value left = value_at(rule_.left, point, a);
      const Value right = value_at(rule_.right, point, a);
      if (same_value(rule_.left.dtype(), left, right)) continue;
      failure_ = fmt::format("{} on {} fails at {}", text_.name, name(dtype_), show(point));
    }
  }

  RuleText text_;
  DType dtype_;
  ExprPool pool_;
  Rule rule_;
  std::string failure_;
  int64_t points_ = 0;
};

// How often the simplifier uses the row on its own left side, constants chosen by its condition.
int64_t uses_on_own_left_side(const RuleText& text, DType dtype) {
  ExprPool pool;
  const Rule rule = parse_rule(pool, text, dtype);
  const auto variables = variables_of(rule);
  for (int64_t trial = 0; trial < 1000; ++trial) {
    Substitution map;
    Point point;
    int64_t digits = trial;
    for (Expr v : variables) {
      if (v.name().str()[0] == 'c') {
        point[v] = int_value(2 + digits % 10);
        map[v] = pool.constant(static_cast<double>(2 + digits % 10), dtype);
        digits /= 10;
      } else {
        map[v] = pool.var(pool.name(fmt::format("{}_", v.name().str())), dtype);
      }
    }
    if (rule.condition && value_at(rule.condition, point).i == 0) continue;
    Simplifier simplifier(pool);
    simplifier.simplify(substitute(pool, rule.left, map));
    const auto& counts = simplifier.rules().counts();
    if (const auto it = counts.find(text.name); it != counts.end()) return it->second;
  }
  return 0;
}

TEST(Rules, EveryRowHoldsOnEveryDTypeOfItsDomain) {
  for (const RuleText& text : rule_texts()) {
    for (DType dtype : dtypes_of(text.domain)) {
      Checker checker(text, dtype);
      EXPECT_EQ(checker.counterexample(), "");
      EXPECT_GE(checker.points(), dtype == DType::Bool ? 2 : 17) << text.name;
    }
  }
}

TEST(Rules, TheRightSideIsSmaller) {
  for (const RuleText& text : rule_texts()) {
    for (DType dtype : dtypes_of(text.domain)) {
      ExprPool pool;
      const Rule rule = parse_rule(pool, text, dtype);
      EXPECT_LT(weight(rule.right), weight(rule.left)) << text.name;
    }
  }
}

TEST(Rules, TheRightSideHasNoVariableMoreOftenThanTheLeft) {
  auto occurrences = [](auto& self, Expr e, Expr v) -> int {
    int n = e == v ? 1 : 0;
    for (Expr a : e.args()) n += self(self, a, v);
    return n;
  };
  for (const RuleText& text : rule_texts()) {
    ExprPool pool;
    const Rule rule = parse_rule(pool, text, dtypes_of(text.domain)[0]);
    for (Expr v : variables_of(rule)) {
      if (v.name().str()[0] == 'c') continue;
      EXPECT_LE(occurrences(occurrences, rule.right, v), occurrences(occurrences, rule.left, v))
          << text.name;
    }
    if (!rule.condition) continue;
    for (Expr v : free_vars(rule.condition)) EXPECT_EQ(v.name().str()[0], 'c') << text.name;
  }
}

TEST(Rules, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const RuleText& text : rule_texts()) {
    EXPECT_TRUE(names.insert(text.name).second) << text.name;
  }
}

TEST(Rules, NoRowIsShadowed) {
  for (const RuleText& text : rule_texts()) {
    for (DType dtype : dtypes_of(text.domain)) {
      EXPECT_GT(uses_on_own_left_side(text, dtype), 0) << text.name << " on " << name(dtype);
    }
  }
}

TEST(Rules, ARowSwitchedOffIsNotUsed) {
  ExprPool pool;
  const Expr x = pool.index("x");
  const Expr e = pool.binary(Op::Add, x, pool.integer(0));
  EXPECT_EQ(Simplifier(pool).simplify(e), x);
  EXPECT_EQ(Simplifier(pool, {"add_zero"}).simplify(e), e);
}

TEST(Rules, TheCheckerFindsWrongRows) {
  const RuleText wrong[] = {
      {"drops_remainder", Domain::index, "(x / c0) * c0", "x", ""},
      {"forgets_to_divide", Domain::index, "(x * c0) / c1", "x * (c0 / c1)", "c1 > 0"},
      {"forgets_zero_modulus", Domain::index, "(x % c0) % c1", "x % c1", "c1 > 0 and c0 % c1 == 0"},
      {"forgets_zero", Domain::index, "(x * c0) / c0", "x", ""},
      {"constant_overflows", Domain::index, "(x / c0) / c1", "x / (c0 * c1)", "c0 > 0 and c1 > 0"},
      {"operand_overflows", Domain::ring, "(x * c0) / c0", "x", "c0 > 0"},
      {"compares_wrapped", Domain::ring, "x < x + 1", "true", ""},
      {"negative_zero", Domain::real, "x + 0.0", "x", ""},
      {"not_a_number", Domain::real, "x * 0.0", "0.0", ""},
      {"infinities", Domain::real, "(x - y) + y", "x", ""},
      {"rounding", Domain::real, "(x * 3.0) / 3.0", "x", ""},
      {"unordered", Domain::order, "x <= x", "true", ""},
      {"one_side", Domain::order, "max(x, y)", "y", ""},
      {"drops_operand", Domain::logic, "x and y", "x", ""},
  };
  for (const RuleText& text : wrong) {
    bool is_found = false;
    for (DType dtype : dtypes_of(text.domain)) {
      is_found |= !Checker(text, dtype).counterexample().empty();
    }
    EXPECT_TRUE(is_found) << text.name;
  }
}

}  // namespace
}  // namespace nautilus::expr
