// SPDX-License-Identifier: Apache-2.0
//
// What the tests of this folder share: expressions from text, their value at a point, and random
// numbers that do not depend on the standard library in use.
#pragma once

#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "diag/render.h"
#include "expr/build.h"
#include "expr/print.h"
#include "expr/scalar_ops.h"

namespace nautilus::expr {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(0, 99) < percent; }
  // Every magnitude of 64 bits is about equally likely.
  int64_t any_size() { return static_cast<int64_t>(bits()) >> static_cast<int>(bits() % 64); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  template <class T>
  const T& of(const std::vector<T>& items) {
    return items[bits() % items.size()];
  }

 private:
  uint64_t state_;
};

using Point = std::unordered_map<Expr, Value>;

enum class Arithmetic {
  AsIs,            // fp64, integers wrapped to their dtype
  RoundToDType,    // every float value rounded to its dtype, as a kernel computes
  WithoutOverflow  // no value where an i64 operation leaves its range
};

inline std::optional<Value> try_value_at(Expr e, const Point& point, Arithmetic arithmetic) {
  switch (e.op()) {
    case Op::Var: {
      const Value v = point.at(e);
      const bool is_rounded = arithmetic == Arithmetic::RoundToDType && is_float(e.dtype());
      return is_rounded ? float_value(round_to(e.dtype(), v.f)) : v;
    }
    case Op::FloatConst:
      return float_value(e.number());
    case Op::IntConst:
    case Op::BoolConst:
      return int_value(e.integer());
    default:
      break;
  }
  Value args[3];
  for (size_t i = 0; i < e.args().size(); ++i) {
    const auto v = try_value_at(e[i], point, arithmetic);
    if (!v) return std::nullopt;
    args[i] = *v;
  }
  Value v = apply(e.op(), e.dtype(), e.args().back().dtype(), args);
  if (arithmetic == Arithmetic::RoundToDType && is_float(e.dtype())) {
    v.f = round_to(e.dtype(), v.f);
  }
  if (arithmetic == Arithmetic::WithoutOverflow && e.dtype() == DType::I64) {
    const __int128 x = args[0].i;
    const __int128 y = e.args().size() == 2 ? args[1].i : 0;
    __int128 exact = v.i;
    if (e.op() == Op::Add) exact = x + y;
    if (e.op() == Op::Sub) exact = x - y;
    if (e.op() == Op::Mul) exact = x * y;
    if (e.op() == Op::Neg) exact = -x;
    if (e.op() == Op::FloorDiv && y == -1) exact = -x;
    if (exact != v.i) return std::nullopt;
  }
  return v;
}

inline Value value_at(Expr e, const Point& point, Arithmetic arithmetic = Arithmetic::AsIs) {
  return *try_value_at(e, point, arithmetic);
}

// Bit for bit; every NaN equals every other.
inline bool same_value(DType dtype, Value a, Value b) {
  if (!is_float(dtype)) return a.i == b.i;
  return std::bit_cast<uint64_t>(a.f) == std::bit_cast<uint64_t>(b.f) ||
         (std::isnan(a.f) && std::isnan(b.f));
}

inline std::string show(const Point& point) {
  std::string out;
  for (const auto& [var, v] : point) {
    out += std::string(var.name().str()) + " = " +
           (is_float(var.dtype()) ? std::to_string(v.f) : std::to_string(v.i)) + "  ";
  }
  return out;
}

// The expression of a text; null, with the messages in `messages`, if the text is not valid.
inline Expr parse_text(const std::string& text, Scope& scope, ExprPool& pool,
                       std::string* messages = nullptr) {
  diag::SourceMap sources;
  diag::Sink sink(sources);
  const auto tokens = text::lex(sources.add("text", text), sink);
  Expr e;
  if (tokens) {
    text::Cursor cursor(*tokens, sink);
    SyntaxPool syntax;
    const Syntax* s = parse_expr(cursor, syntax);
    if (s && cursor.peek().kind != text::Token::End) cursor.unexpected("the end");
    if (s && !sink.has_errors()) e = build(*s, scope, pool, sink);
  }
  if (messages) *messages = diag::render_all(sink);
  return e;
}

}  // namespace nautilus::expr
