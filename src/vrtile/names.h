// SPDX-License-Identifier: Apache-2.0
// Fresh names for passes that make tiles or clone code.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "ir/op.h"

namespace nautilus::vrtile {

class Names {
 public:
  // Knows every name in the block: variables, axes, tensors and names that ops define.
  Names(const ir::Block& block, expr::ExprPool& pool) : pool_(pool) { add(block); }

  void add(const ir::Block& block);
  // `base` if it is free, else `base_1`, `base_2`, ...
  ir::Name fresh(std::string_view base);
  // As fresh, for a copy of `name`: a number at its end is replaced, not extended.
  ir::Name copy(ir::Name name);

 private:
  void add(ir::Expr e);

  expr::ExprPool& pool_;
  std::unordered_set<std::string> taken_;
};

}  // namespace nautilus::vrtile
