// SPDX-License-Identifier: Apache-2.0
// Known divisors of sizes.
#pragma once

#include <map>
#include <string>

#include "expr/bounds/affine.h"

namespace nautilus::expr {

// From facts such as `N % 8 == 0`.
using Divisors = std::map<std::string, int64_t, std::less<>>;

// Adds the divisor of a fact; facts of other kinds add nothing.
void assume_divisor(Expr fact, Divisors& divisors);

// True if the value is a multiple of n whatever the variables are.
bool is_multiple(const Poly& poly, int64_t n, const Divisors& divisors);

}  // namespace nautilus::expr
