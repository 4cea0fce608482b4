// SPDX-License-Identifier: Apache-2.0
// Expressions as written: an untyped tree with source spans.
//
// One grammar (docs/language.md, section 1) serves the math language, the IR texts and the rewrite
// rules. What a name means and which dtypes result is decided afterwards: by
// spec/language/elaborate.cc with promotion and functions for the math language, by expr/build.cc
// without either for IR text.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "diag/source.h"
#include "expr/dtype.h"
#include "text/lexer.h"

namespace nautilus::expr {

struct Syntax;

struct SyntaxAxis {
  std::string_view name;  // `..`: a copy of the axis that bounds it
  diag::Span span;
  // The right side of a relation: the extent if the relation is `<` and it contains no axis, else a
  // bound. Null: the extent is inferred.
  const Syntax* extent = nullptr;
  std::string_view relation = {};  // "<", in a reduction also "<=", ">", ">="
};

struct Syntax {
  enum class Kind : uint8_t {
    Integer,
    Float,
    Inf,
    Bool,
    Name,
    Index,
    Call,
    Prefix,
    Infix,
    Reduce,
    Let,
    Repeat,
    Table
  };

  Kind kind;
  diag::Span span;        // the whole expression
  diag::Span name_span;   // the name or operator
  std::string_view text;  // name, operator, reducer
  int64_t integer = 0;    // Integer, Bool
  double number = 0;      // Float
  // Index, Call, operands; Reduce: body, and the rank if there is one; Let: value, body; Repeat:
  // values, steps, body; Table: elements, index
  std::vector<const Syntax*> args;
  std::vector<SyntaxAxis> axes;  // Reduce; Call: axes in brackets; Repeat: names, then the rounds
  const Syntax* init = nullptr;  // Reduce
  std::optional<DType> acc;      // Reduce
  bool is_parenthesised = false;
  uint32_t depth = 1;
};

// Owns syntax nodes; addresses are stable.
using SyntaxPool = std::deque<Syntax>;

// Deeper expressions are refused, so that recursive walks never run out of stack.
constexpr uint32_t kMaxDepth = 400;

// Words of the language that are neither reducers nor dtypes.
std::span<const std::string_view> keywords();
bool is_reducer_word(std::string_view word);
// True for words that cannot name anything: keywords, reducers, dtypes.
bool is_reserved(std::string_view name);

// Parses one expression; null if something was reported.
const Syntax* parse_expr(text::Cursor& cursor, SyntaxPool& pool);
// `i`, `i < M`
std::optional<SyntaxAxis> parse_axis(text::Cursor& cursor, SyntaxPool& pool);
// A name that is not reserved; empty if something was reported.
std::optional<text::Lexeme> parse_name(text::Cursor& cursor, std::string_view what);

}  // namespace nautilus::expr
