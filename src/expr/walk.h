// SPDX-License-Identifier: Apache-2.0
// Generic traversals of expressions: substitution, free variables, reads. All are memoised over the
// DAG.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "expr/expr.h"

namespace nautilus::expr {

using Substitution = std::unordered_map<Expr, Expr>;

// Replaces every occurrence of a key by its value. Keys may be any expressions; a replaced value is
// not searched again. Reduction axes are occurrences like any other: the caller keeps names apart
// (axes are unique within an equation).
Expr substitute(ExprPool& pool, Expr e, const Substitution& map);

// Rebuilds `e` bottom-up: `f` gets each node with its operands already rebuilt and returns the node
// to use.
template <class F>
Expr rebuild(ExprPool& pool, Expr e, F&& f) {
  std::unordered_map<Expr, Expr> memo;
  auto go = [&](auto& self, Expr x) -> Expr {
    if (const auto it = memo.find(x); it != memo.end()) return it->second;
    std::vector<Expr> args(x.args().begin(), x.args().end());
    bool is_changed = false;
    for (Expr& a : args) {
      const Expr b = self(self, a);
      is_changed |= b != a;
      a = b;
    }
    const Expr y = f(is_changed ? pool.with_args(x, args) : x);
    memo.emplace(x, y);
    return y;
  };
  return go(go, e);
}

// Calls `f` once for every distinct node, operands first.
template <class F>
void for_each(Expr e, F&& f) {
  std::unordered_set<Expr> seen;
  auto go = [&](auto& self, Expr x) -> void {
    if (!seen.insert(x).second) return;
    for (Expr a : x.args()) self(self, a);
    f(x);
  };
  go(go, e);
}

// Variables that occur free, in order of first occurrence; reduction axes are bound in their
// bodies.
std::vector<Expr> free_vars(Expr e);
bool depends_on(Expr e, Expr var);
bool has_reduce(Expr e);
// Distinct tensors read, in order of first occurrence.
std::vector<Name> tensors_read(Expr e);

}  // namespace nautilus::expr
