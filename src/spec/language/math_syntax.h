// SPDX-License-Identifier: Apache-2.0
// A .naut program as written: statements with untyped expressions (docs/language.md, section 1).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/diagnostic.h"
#include "expr/syntax.h"
#include "ir/decl.h"

namespace nautilus::spec {

struct NameSyntax {
  std::string_view text;
  diag::Span span;
};

struct StaticSyntax {
  NameSyntax name;
  const expr::Syntax* value;
};

struct HintSyntax {
  NameSyntax name;
  int64_t value;
};

struct NumericsSyntax {
  diag::Span span;
  std::vector<std::pair<ir::Rounding, diag::Span>> roundings;  // one at most is right
  std::optional<double> rel;
  std::optional<double> abs;
};

struct FunctionSyntax {
  NameSyntax name;
  std::vector<NameSyntax> axes;
  std::vector<NameSyntax> params;
  const expr::Syntax* body = nullptr;
  bool is_library = false;
};

struct TensorSyntax {
  NameSyntax name;
  expr::DType dtype;
  std::vector<const expr::Syntax*> dims;
};

struct ScalarSyntax {
  NameSyntax name;
  expr::DType dtype;
  const expr::Syntax* init = nullptr;
};

struct EquationSyntax {
  NameSyntax name;
  diag::Span left;  // name and axes
  std::vector<expr::SyntaxAxis> axes;
  const expr::Syntax* body = nullptr;
  const expr::Syntax* init = nullptr;  // `from`
  std::optional<expr::DType> stored;   // `-> dtype`
  diag::Span stored_span;
};

struct MathSyntax {
  std::vector<NameSyntax> dims;
  std::vector<StaticSyntax> statics;
  std::vector<StaticSyntax> sizes;  // `size HO = ...`
  std::vector<HintSyntax> hints;
  std::vector<const expr::Syntax*> facts;
  std::vector<NumericsSyntax> numerics;
  std::vector<FunctionSyntax> functions;
  std::vector<TensorSyntax> tensors;
  std::vector<ScalarSyntax> scalars;
  std::vector<EquationSyntax> equations;
  expr::SyntaxPool pool;
  std::deque<std::string> names;  // without a place in the text: axes of tables
};

// Appends the statements of a file. After an error, parsing resumes at the next line that starts in
// the first column. Returns false if something was reported.
bool parse_math(uint32_t file, MathSyntax& out, diag::Sink& sink);

}  // namespace nautilus::spec
