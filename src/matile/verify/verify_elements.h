// SPDX-License-Identifier: Apache-2.0
// Rules of register work: what an element-wise expression may read, and in which thread it must be.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/verify.h"
#include "matile/access.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {

class ElementRules {
 public:
  using TensorRoles = std::map<std::string, TensorRole, std::less<>>;
  // Uses the state of the role's tiles, the program's tensors and the open unrolls at each call.
  ElementRules(ir::Verifier& verifier, const RoleTiles& tiles, const TensorRoles& tensors,
               const std::map<std::string, int>& unrolled)
      : v_(verifier), tiles_(tiles), roles_(tensors), unrolled_(unrolled) {}

  // Tensors that the kernel writes: it cannot read them as well.
  void set_written(std::set<std::string> tensors) { written_ = std::move(tensors); }
  // After a ticket, elements that other CTAs put into temporaries can be read.
  void set_behind_ticket(bool is_behind) { is_behind_ticket_ = is_behind; }
  bool is_behind_ticket() const { return is_behind_ticket_; }

  const TileUse* find_tile(ir::Name name);
  // What device code can compute.
  void functions(expr::Expr e);
  static bool is_foldable(expr::Reducer r);

  void set(const Set& op);
  void fold(const Fold& op);
  void vote(const Vote& op);
  void load(const Load& op);
  void prefetch(const Prefetch& op);
  void put(const Put& op);

 private:
  void value(expr::Expr e);
  void function(expr::Expr e);
  void narrow(expr::Expr e);
  void global(expr::Expr read);
  void elements(expr::Expr e, const Domain& domain);
  void outside(expr::Expr e, expr::Expr reduce, const Domain& domain);
  bool fits(const TileUse& target, const ir::Axes& axes);
  std::optional<Domain> domain_of(expr::Expr value, const std::vector<expr::Name>& axes,
                                  const std::vector<expr::Expr>& extents);

  ir::Verifier& v_;
  const RoleTiles& tiles_;
  const TensorRoles& roles_;
  const std::map<std::string, int>& unrolled_;
  std::set<std::string> written_;
  bool is_behind_ticket_ = false;
  expr::ExprPool pool_;  // of index variables for register_access
};

}  // namespace nautilus::matile
