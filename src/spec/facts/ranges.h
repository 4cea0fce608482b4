// SPDX-License-Identifier: Apache-2.0
// Does every read stay inside its tensor? (docs/language.md, section 4)
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "diag/diagnostic.h"
#include "expr/bounds/bounds.h"
#include "spec/ops.h"

namespace nautilus::spec {

struct RangeContext {
  const std::map<std::string, ir::TensorType>& types;
  const std::unordered_map<ir::Expr, diag::Span>& read_spans;
  diag::Span fallback;  // for reads without a place in the text
};

// Reports reads that leave their tensor, or may and have no guard. `facts` knows sizes and declared
// facts.
bool check_ranges(const Let& let, const expr::Facts& facts, const RangeContext& context,
                  expr::ExprPool& pool, diag::Sink& sink);

// True if two sizes have one value whenever the facts hold.
bool are_equal(ir::Expr a, ir::Expr b, const expr::Facts& facts, expr::ExprPool& pool);

// True if every index of the read is provably inside `type`.
bool is_inside(ir::Expr read, const ir::TensorType& type, const expr::Facts& facts,
               expr::ExprPool& pool);

// The same for all reads of an expression.
bool are_inside(ir::Expr e, const std::map<std::string, ir::TensorType>& types,
                const expr::Facts& facts, expr::ExprPool& pool);

// Whether an expression may be evaluated where some axes are empty: no proof that a read is inside
// needs these axes. `fewer`: facts without those axes, `all`: with them.
bool are_inside_without_axes(ir::Expr e, const std::map<std::string, ir::TensorType>& types,
                             const expr::Facts& fewer, const expr::Facts& all,
                             expr::ExprPool& pool);

// Whether the terms of a reduction may be evaluated where the reduction is empty: no proof that a
// read is inside needs the axes of the reduction. `outer`: facts without those axes.
bool are_inside_without_terms(ir::Expr e, ir::Expr reduction,
                              const std::map<std::string, ir::TensorType>& types,
                              const expr::Facts& outer, expr::ExprPool& pool);

}  // namespace nautilus::spec
