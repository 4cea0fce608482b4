// SPDX-License-Identifier: Apache-2.0
#include "expr/rules/rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "base/check.h"
#include "diag/render.h"
#include "expr/build.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::expr {

const std::vector<RuleText>& rule_texts() {
  static const std::vector<RuleText> rows = [] {
#define RULE(name, domain, left, right, condition) {#name, Domain::domain, left, right, condition},
    return std::vector<RuleText>{
#include "expr/rules/rules.def"
    };
#undef RULE
  }();
  return rows;
}

std::vector<DType> dtypes_of(Domain domain) {
  switch (domain) {
    case Domain::ring:
      return {DType::I32, DType::I64};
    case Domain::index:
      return {DType::I64};
    case Domain::order:
      return {DType::I32, DType::I64, DType::F32, DType::F64};
    case Domain::real:
      return {DType::F32, DType::F64};
    case Domain::logic:
      return {DType::Bool};
  }
  return {};
}

namespace {

constexpr std::string_view kAny[] = {"x", "y", "z"};
constexpr std::string_view kConstants[] = {"c0", "c1", "c2"};

bool is_constant_name(Name name) {
  return std::find(std::begin(kConstants), std::end(kConstants), name.str()) !=
         std::end(kConstants);
}

// Rule texts are read once per process; only building them is done per pool.
const Syntax& syntax_of(std::string_view text) {
  static std::mutex mutex;
  static diag::SourceMap sources;
  static SyntaxPool pool;
  static std::map<std::string_view, const Syntax*> cache;
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = cache.emplace(text, nullptr);
  if (is_new) {
    diag::Sink sink(sources);
    const auto tokens = text::lex(sources.add("rule", std::string(text)), sink);
    if (tokens) {
      text::Cursor cursor(*tokens, sink);
      it->second = parse_expr(cursor, pool);
    }
    NAUT_CHECK(it->second, "rule text `{}`: {}", text, diag::render_all(sink));
  }
  return *it->second;
}

// Rules are written with i64 and f32 literals and read at every dtype of their domain: built at the
// literal's dtype, then moved.
Expr parse_side(ExprPool& pool, std::string_view text, DType dtype) {
  const diag::SourceMap sources;
  diag::Sink sink(sources);
  Scope scope;
  const DType literal = is_float(dtype)        ? DType::F32
                        : dtype == DType::Bool ? DType::Bool
                                               : DType::I64;
  for (std::string_view v : kAny) scope.add_var(v, literal);
  for (std::string_view v : kConstants) scope.add_var(v, literal);
  const Expr e = build(syntax_of(text), scope, pool, sink);
  NAUT_CHECK(e, "rule text `{}`: {}", text, sink.all().back().message);
  if (literal == dtype) return e;
  return rebuild(pool, e, [&](Expr x) {
    if (x.op() == Op::Var && x.dtype() == literal) return pool.var(x.name(), dtype);
    if (x.op() == Op::IntConst) return pool.integer(x.integer(), dtype);
    if (x.op() == Op::FloatConst) return pool.floating(x.number(), dtype);
    return x;
  });
}

}  // namespace

bool is_constant_pattern(Expr pattern) {
  if (pattern.op() == Op::Var) return is_constant_name(pattern.name());
  return std::all_of(pattern.args().begin(), pattern.args().end(), is_constant_pattern);
}

Rule parse_rule(ExprPool& pool, const RuleText& text, DType dtype) {
  Rule rule{text.name, parse_side(pool, text.left, dtype), parse_side(pool, text.right, dtype), {}};
  if (!text.condition.empty()) rule.condition = parse_side(pool, text.condition, dtype);
  return rule;
}

uint64_t weight(Expr pattern) {
  if (is_constant_pattern(pattern)) return 1;
  uint64_t operands = 0;
  for (Expr a : pattern.args()) operands += weight(a);
  // A constant at the end of an operand of a sum moves outwards.
  auto inner_constants = [&] {
    uint64_t count = 0;
    for (Expr a : pattern.args()) count += a.op() == Op::Add && is_constant_pattern(a[1]) ? 1 : 0;
    return count;
  };
  switch (pattern.op()) {
    case Op::Var:
      return 2;
    case Op::Add:
      return 4 + operands + 3 * inner_constants();
    case Op::Sub:  // x - c0 becomes x + -c0
      return 5 + operands + 3 * inner_constants();
    case Op::Neg:
      return 6 + operands;
    case Op::FloorDiv:
    case Op::Mod:  // whatever can leave a division should
      return 40 + 2 * operands;
    default:
      return 4 + operands;
  }
}

// Passes make rule sets by the hundred; the texts are the same for all of them.
struct RuleTable {
  explicit RuleTable(ExprPool& pool) {
    by_op.resize(static_cast<size_t>(Op::IntConst) + 1);
    for (const RuleText& text : rule_texts()) {
      for (DType dtype : dtypes_of(text.domain)) {
        const Rule rule = parse_rule(pool, text, dtype);
        by_op[static_cast<size_t>(rule.left.op())].push_back(rule);
      }
    }
  }
  std::vector<std::vector<Rule>> by_op;
};

RuleSet::RuleSet(ExprPool& pool, const std::vector<std::string>& disabled)
    : pool_(pool), disabled_(disabled) {
  if (!pool.rules_) pool.rules_ = std::make_shared<const RuleTable>(pool);
  table_ = pool.rules_;
}

bool match(Expr pattern, Expr e, Bindings& bindings) {
  if (pattern.op() == Op::Var) {
    if (pattern.dtype() != e.dtype()) return false;
    if (is_constant_name(pattern.name()) && !e.is_const()) return false;
    for (const auto& [variable, value] : bindings) {
      if (variable == pattern) return value == e;
    }
    bindings.emplace_back(pattern, e);
    return true;
  }
  if (pattern.is_const()) return pattern == e;
  if (pattern.op() != e.op() || pattern.dtype() != e.dtype() ||
      pattern.args().size() != e.args().size())
    return false;
  for (size_t i = 0; i < e.args().size(); ++i) {
    if (!match(pattern[i], e[i], bindings)) return false;
  }
  return true;
}

Expr fold(ExprPool& pool, Expr e) {
  if (e.args().empty() || e.op() == Op::Reduce || e.op() == Op::Read) return {};
  Value args[3];
  for (size_t i = 0; i < e.args().size(); ++i) {
    const Expr a = e[i];
    if (!a.is_const()) return {};
    args[i] = a.op() == Op::FloatConst ? float_value(a.number()) : int_value(a.integer());
  }
  const DType operand = e.args().back().dtype();
  const Value v = apply(e.op(), e.dtype(), operand, args);
  if (e.dtype() == DType::Bool) return pool.boolean(v.i != 0);
  if (!is_float(e.dtype())) return pool.integer(v.i, e.dtype());
  return std::isnan(v.f) ? Expr() : pool.floating(v.f, e.dtype());
}

Expr RuleSet::apply(Expr e) {
  for (const Rule& rule : table_->by_op[static_cast<size_t>(e.op())]) {
    if (std::find(disabled_.begin(), disabled_.end(), rule.name) != disabled_.end()) continue;
    Bindings bindings;
    if (!match(rule.left, e, bindings)) continue;
    Substitution map(bindings.begin(), bindings.end());
    auto instantiate = [&](Expr side) {
      return rebuild(pool_, side, [&](Expr x) {
        if (const auto it = map.find(x); it != map.end()) return it->second;
        const Expr folded = fold(pool_, x);
        return folded ? folded : x;
      });
    };
    if (rule.condition && !instantiate(rule.condition).is_true()) continue;
    ++counts_[rule.name];
    return instantiate(rule.right);
  }
  return {};
}

}  // namespace nautilus::expr
