// SPDX-License-Identifier: Apache-2.0
// Index arithmetic between register tiles, as text over the number of a register.
//
// A tile op is one loop over the registers of a tile. For every register number e the loop needs
// values (the register of another tile, a coordinate) that are functions of the digits of e. As
// text, such as `e / 2 % 2`, they are constant once the loop is unrolled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "layout/digits.h"

namespace nautilus::matile {

// A digit of a register number.
struct RegisterDigit {
  int stride;
  int extent;
};
std::vector<RegisterDigit> register_digits(const layout::Layout& layout);

// base + sum of coefficient_k * digit_k(e).
struct DigitSum {
  int base = 0;
  std::vector<RegisterDigit> digits;
  std::vector<int> coefficients;

  bool is_constant() const;
  int at(int e) const;
  // True if the registers 0 .. count-1 give the values 0 .. count-1 in some order.
  bool is_permutation(int count) const;
  // `e` is a name or a number; put the text in parentheses to use it as an operand of * or of a
  // comparison.
  std::string text(const std::string& e) const;
};

// The sum that equals f for all registers of the layout. It exists for every map between layouts of
// digits; any other f is a compiler bug.
DigitSum fit(const layout::Layout& layout, const std::function<int(int)>& f);

// Text of what a thread adds to the coordinate of an axis: `16 * warp + lane / 4`. The caller has
// `warp` and `lane` in scope. "0" if the axis is only in registers.
std::string thread_coordinate(const layout::Layout& layout, int axis);

}  // namespace nautilus::matile
