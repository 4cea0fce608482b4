// SPDX-License-Identifier: Apache-2.0
// Which tiles are known to hold no -inf, and which only finite numbers.
//
// Operands of products are finite by the numerics contract, and so are the products. Other inputs
// may hold -inf where the program guards against it (a bias that masks). A maximum is above -inf if
// one of its operands is. A lazy reference, which moves only when it grew by more than some amount
// (passes/lazy_reference.h), is above -inf where the value it follows is: growth from -inf is
// infinite.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/op.h"

namespace nautilus::vrtile {

bool is_minus_infinity(ir::Expr e);
// Of either sign.
bool is_infinity(ir::Expr e);

class FiniteTiles {
 public:
  explicit FiniteTiles(const ir::Program& program) : program_(&program) {}

  // To be called for the ops in their order. Nothing is known about carries.
  void add(const ir::Op& op);
  // Every value of the expression is above -inf, or not a number.
  bool is_above(ir::Expr e) const;
  bool is_finite(ir::Expr e) const;

 private:
  bool follows_growth(ir::Expr condition, ir::Expr kept) const;

  const ir::Program* program_;
  std::unordered_set<ir::Name> loads_;
  std::unordered_set<ir::Name> finite_;
  std::unordered_set<ir::Name> above_;
  std::unordered_map<ir::Name, ir::Expr> votes_;  // tiles that are `any` of something
};

}  // namespace nautilus::vrtile
