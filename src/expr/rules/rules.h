// SPDX-License-Identifier: Apache-2.0
// Rewrite rules as data (rules.def), parsed once per pool and tried by root operator.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "expr/expr.h"

namespace nautilus::expr {

// As in rules.def.
enum class Domain : uint8_t { ring, index, order, real, logic };

struct RuleText {
  std::string_view name;
  Domain domain;
  std::string_view left;
  std::string_view right;
  std::string_view condition;  // empty: always
};
const std::vector<RuleText>& rule_texts();

// A rule for one operand dtype: pattern variables are Vars named x, y, z, c0, c1, c2 of that dtype.
struct Rule {
  std::string_view name;
  Expr left;
  Expr right;
  Expr condition;  // null: always
};

// Operand dtypes on which the rules of a domain hold.
std::vector<DType> dtypes_of(Domain domain);

// Parses one row; the texts are part of the program, so failure is a compiler bug.
Rule parse_rule(ExprPool& pool, const RuleText& text, DType dtype);

// A rule's cost order: the right side must be smaller. Constant parts count as one constant.
uint64_t weight(Expr pattern);
// True for x + c0, c0 * c1, ...: expressions of constants only.
bool is_constant_pattern(Expr pattern);

class RuleSet {
 public:
  // Rows named in `disabled` are left out.
  explicit RuleSet(ExprPool& pool, const std::vector<std::string>& disabled = {});

  // One rewrite step at the root of `e`, or null if no rule matches. Counts matches per rule name.
  Expr apply(Expr e);
  const std::unordered_map<std::string_view, int64_t>& counts() const { return counts_; }

 private:
  ExprPool& pool_;
  std::shared_ptr<const RuleTable> table_;  // of the pool
  std::vector<std::string> disabled_;
  std::unordered_map<std::string_view, int64_t> counts_;
};

// Binds pattern variables so that `pattern` becomes `e`; false if it cannot.
using Bindings = std::vector<std::pair<Expr, Expr>>;
bool match(Expr pattern, Expr e, Bindings& bindings);

// Constant value of an operator whose operands are all constants; null if it has none (or it would
// be NaN).
Expr fold(ExprPool& pool, Expr e);

}  // namespace nautilus::expr
