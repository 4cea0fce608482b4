// SPDX-License-Identifier: Apache-2.0
// What the names of a .naut program stand for while it is elaborated.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "ir/op.h"
#include "spec/language/math_syntax.h"

namespace nautilus::spec {

// A tensor that is the state of a scan: its elements before the first step are `init`.
struct StateSymbol {
  size_t along = 0;            // dimension
  bool is_up = true;           // the first step is at index 0, else at the last one
  std::vector<ir::Expr> axes;  // used in `init`, by dimension; null: the dimension of the steps
  ir::Expr init;
  // While the scan is elaborated:
  bool is_open = true;
  bool is_number = true;  // its dtype is not known yet; readers decide
};

struct Symbol {
  enum class Kind : uint8_t { Size, Scalar, Tensor, Function };
  Kind kind;
  diag::Span span;
  ir::Expr value;                     // Size: variable or constant; Scalar: variable
  ir::TensorType type;                // Tensor, once known
  std::vector<diag::Span> dim_spans;  // Tensor that is declared: where each dimension is written
  bool is_known = true;               // Tensor: false until its equation is elaborated
  const FunctionSyntax* function = nullptr;  // Function
  // Tensor. While a scan is elaborated, unknown dimensions of the type are null.
  std::optional<StateSymbol> state = {};
};

std::string_view describe(Symbol::Kind kind);

class Symbols {
 public:
  // Reports a duplicate (against built-in functions and reserved words too) and returns null then.
  Symbol* add(const NameSyntax& name, Symbol symbol, diag::Sink& sink);
  Symbol* find(std::string_view name);
  const Symbol* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, Symbol, std::less<>> table_;
};

}  // namespace nautilus::spec
