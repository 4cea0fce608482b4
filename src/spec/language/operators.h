// SPDX-License-Identifier: Apache-2.0
// Operators and built-in functions of values that are elaborated: dtypes that meet are promoted,
// and what does not fit is reported.
#pragma once

#include "spec/language/elaboration_scope.h"

namespace nautilus::spec {

// Nothing where something was reported.
class Operators {
 public:
  explicit Operators(ElaborationScope& scope) : scope_(scope) {}

  Typed prefix(const expr::Syntax& s, Typed x);
  // An infix operator, or a function of two values.
  Typed binary(const expr::Syntax& s, Typed x, Typed y);
  Typed function(const expr::Syntax& s, expr::Op op, Typed x);
  Typed select(const expr::Syntax& s, Typed condition, Typed x, Typed y);

  Typed mismatch(const expr::Syntax& s, Typed x, Typed y);
  Typed wrong_dtype(const expr::Syntax& s, expr::DType dtype);

 private:
  struct Operands {
    Typed x;
    Typed y;
  };
  // Whether an integer division outside an index is what is meant; reported if it is not.
  bool is_meant(const expr::Syntax& s, const Operands& promoted, const Operands& written);

  ElaborationScope& scope_;
};

}  // namespace nautilus::spec
