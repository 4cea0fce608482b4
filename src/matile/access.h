// SPDX-License-Identifier: Apache-2.0
// The register of a tile that an index expression means, for every element of an op's domain.
//
// An element-wise op runs over the registers of one tile, its domain. Reading another tile is legal
// if each thread holds the element it needs and the register is the same in every thread. The
// register is then a sum of digits of the domain's register number, plus multiples of the variables
// of enclosing `unroll`s.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "expr/expr.h"
#include "layout/digits.h"
#include "matile/registers.h"

namespace nautilus::matile {

// A register layout with named axes.
struct Domain {
  layout::Layout layout;
  std::vector<expr::Name> axes;
};

// constant + sum of coefficient * variable.
struct AffineIndex {
  int64_t constant = 0;
  std::map<std::string, int64_t, std::less<>> coefficients;
};
// Empty if the expression has anything but variables times constants.
std::optional<AffineIndex> affine_index(expr::Expr e);

struct RegisterAccess {
  DigitSum reg;
  std::vector<std::pair<std::string, int>> unrolled;  // variable and registers per step
};

// `unrolled` gives the extents of the unroll variables in scope.
std::optional<RegisterAccess> register_access(const Domain& domain, const layout::Layout& source,
                                              std::span<const expr::Expr> indices,
                                              const std::map<std::string, int>& unrolled);

}  // namespace nautilus::matile
