// SPDX-License-Identifier: Apache-2.0
// Typed expressions from syntax, without any conversion: for IR text and rewrite rules.
//
// Operands must already have equal dtypes; casts are written. Integer literals are i64 and float
// literals f32 unless a cast around the literal says otherwise.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "expr/expr.h"
#include "expr/syntax.h"

namespace nautilus::expr {

// What the names in an expression mean. Variables may be shadowed by nothing; scopes nest.
class Scope {
 public:
  struct Tensor {
    DType dtype;
    size_t rank;
  };

  void add_var(std::string_view name, DType dtype);
  void add_tensor(std::string_view name, DType dtype, size_t rank);
  std::optional<DType> var(std::string_view name) const;
  std::optional<Tensor> tensor(std::string_view name) const;
  std::vector<std::string> names() const;

  // Variables added after mark() are removed by release().
  size_t mark() const { return vars_.size(); }
  void release(size_t mark) { vars_.resize(mark); }

 private:
  std::vector<std::pair<std::string, DType>> vars_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

// Null if something was reported.
Expr build(const Syntax& syntax, Scope& scope, ExprPool& pool, diag::Sink& sink);

// The operator a function name or infix text stands for; FloorDiv or Div by dtype.
std::optional<Op> function_op(std::string_view name);
std::vector<std::string_view> function_names();
std::optional<Op> infix_op(std::string_view text, DType operand);
std::optional<Reducer> parse_reducer(std::string_view name);

}  // namespace nautilus::expr
