// SPDX-License-Identifier: Apache-2.0
// The sizes that choices are made for where a program leaves them open.
#pragma once

#include "ir/environment.h"

namespace nautilus::ir {

// Sizes that were asked for; else hints, none of them tiny: hints of programs that nobody asked
// for are small so that tests are fast.
class UsualSizes {
 public:
  explicit UsualSizes(const Program& program);

  // At least 1.
  double extent(Expr e) const;
  double count(const Axes& axes) const;
  // The same by hints alone, however small; 1 if a size has none.
  double least(Expr e) const;

 private:
  double extent(Expr e, const Environment& sizes, double unknown) const;

  Environment sizes_;
  Environment hints_;
  double unknown_;  // extent that data or scalars determine
};

}  // namespace nautilus::ir
