// SPDX-License-Identifier: Apache-2.0
// Parts of an expression that its text would repeat. Expressions share equal parts, but text is a
// tree: ten rounds of a random number, each of which reads the one before it twice, are a thousand
// copies of the first one.
#pragma once

#include <set>
#include <vector>

#include "expr/expr.h"

namespace nautilus::emit {

// Subexpressions that occur more than once, each behind those that it contains: reads, and what has
// at least `worth` nodes. What may be evaluated only under a condition, a read in a branch of
// `where`, is not among them: it may be outside its tensor.
std::vector<expr::Expr> shared_parts(expr::Expr root, uint32_t worth);

// Nodes that are evaluated whatever the conditions in the expression are.
std::set<const expr::Node*> evaluated_always(expr::Expr e);

}  // namespace nautilus::emit
