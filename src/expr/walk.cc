// SPDX-License-Identifier: Apache-2.0
#include "expr/walk.h"

#include <algorithm>

namespace nautilus::expr {

Expr substitute(ExprPool& pool, Expr e, const Substitution& map) {
  if (map.empty()) return e;
  std::unordered_map<Expr, Expr> memo;
  auto go = [&](auto& self, Expr x) -> Expr {
    if (const auto it = map.find(x); it != map.end()) return it->second;
    if (x.args().empty()) return x;
    if (const auto it = memo.find(x); it != memo.end()) return it->second;
    std::vector<Expr> args;
    bool is_changed = false;
    for (Expr a : x.args()) {
      args.push_back(self(self, a));
      is_changed |= args.back() != a;
    }
    const Expr y = is_changed ? pool.with_args(x, args) : x;
    memo.emplace(x, y);
    return y;
  };
  return go(go, e);
}

namespace {

// Free variables of every node, memoised: a node's set does not depend on its context.
class FreeVars {
 public:
  const std::vector<Expr>& of(Expr e) {
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    std::vector<Expr> out;
    auto add = [&](Expr v) {
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    };
    if (e.op() == Op::Var) {
      add(e);
    } else if (e.op() == Op::Reduce) {
      std::vector<Expr> bound;
      for (size_t k = 0; k < e.axis_count(); ++k) bound.push_back(e.axis(k));
      for (Expr v : of(e.body())) {
        if (std::find(bound.begin(), bound.end(), v) == bound.end()) add(v);
      }
      for (size_t k = 0; k < e.axis_count(); ++k) {
        for (Expr v : of(e.extent(k))) add(v);
      }
      if (e.init()) {
        for (Expr v : of(e.init())) add(v);
      }
    } else {
      for (Expr a : e.args()) {
        for (Expr v : of(a)) add(v);
      }
    }
    return memo_.emplace(e, std::move(out)).first->second;
  }

 private:
  std::unordered_map<Expr, std::vector<Expr>> memo_;
};

}  // namespace

std::vector<Expr> free_vars(Expr e) { return FreeVars().of(e); }

bool depends_on(Expr e, Expr var) {
  if (var.op() != Op::Var) return false;
  std::unordered_set<Expr> seen;
  const auto occurs = [&](const auto& self, Expr x) -> bool {
    if (x.args().empty()) return x == var;
    if (!seen.insert(x).second) return false;
    if (x.op() != Op::Reduce)
      return std::any_of(x.args().begin(), x.args().end(), [&](Expr a) { return self(self, a); });
    bool is_bound = false;
    for (size_t k = 0; k < x.axis_count(); ++k) {
      is_bound |= x.axis(k) == var;
      if (self(self, x.extent(k))) return true;
    }
    return (!is_bound && self(self, x.body())) || (x.init() && self(self, x.init()));
  };
  return occurs(occurs, e);
}

bool has_reduce(Expr e) {
  bool found = false;
  for_each(e, [&](Expr x) { found |= x.op() == Op::Reduce; });
  return found;
}

std::vector<Name> tensors_read(Expr e) {
  std::vector<Name> out;
  for_each(e, [&](Expr x) {
    if (x.op() == Op::Read && std::find(out.begin(), out.end(), x.name()) == out.end())
      out.push_back(x.name());
  });
  return out;
}

}  // namespace nautilus::expr
