// SPDX-License-Identifier: Apache-2.0
// Reductions of the math language: their axes (elaborate_range.cc), what a reducer asks of its body
// and its initial element (elaborate_reduce.cc), elements by their rank (elaborate_rank.cc).
#pragma once

#include <vector>

#include "spec/language/operators.h"
#include "spec/language/reduced_terms.h"
#include "spec/language/taken_out.h"

namespace nautilus::spec {

class ExprElaborator;

class ReductionElaborator {
 public:
  // `parts`: elaborates what a reduction consists of.
  ReductionElaborator(ElaborationScope& scope, Operators& operators, TakenOut& taken_out,
                      ExprElaborator& parts)
      : scope_(scope), operators_(operators), taken_out_(taken_out), parts_(parts) {}

  Typed reduce(const expr::Syntax& s);

 private:
  bool ranges(const expr::Syntax& s, std::vector<Range>& out);
  bool copied_range(const expr::SyntaxAxis& a, std::vector<Range>& out);
  bool bind_range(const expr::SyntaxAxis& a, ir::Expr extent, std::vector<Range>& out);
  Typed reduce_body(const expr::Syntax& s, size_t axes, Typed body);
  ir::Expr reduced(const expr::Syntax& s, const std::vector<Range>& ranges, Typed body,
                   ir::Expr init);
  ir::Expr rank(const expr::Syntax& s);
  Typed ranked(const expr::Syntax& s, const std::vector<Range>& ranges, Typed body, ir::Expr rank);

  ElaborationScope& scope_;
  Operators& operators_;
  TakenOut& taken_out_;
  ExprElaborator& parts_;
  ReducedTerms terms_{scope_.axes, scope_.pool};
};

}  // namespace nautilus::spec
