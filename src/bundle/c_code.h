// SPDX-License-Identifier: Apache-2.0
// Expressions of a plan as C: calls of the operators that prelude/bundle/numbers.h defines, so that
// a launcher computes what plan::Code computes, bit by bit.
//
//   (M + 127) / 128 * heads    i_mul(i_floor_div(i_add(v->M, 127), 128), v->heads)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/code.h"

namespace nautilus::bundle {

// The C text of each slot: a double if `is_float`, else an int64_t.
struct SlotText {
  std::string text;
  bool is_float = false;
};

std::string c_expression(const plan::Code& code, const std::vector<SlotText>& slots);

// The double `text` as the nearest value of a float type.
std::string c_rounded(expr::DType dtype, const std::string& text);

// A literal; every byte that is not plain is escaped.
std::string c_string(std::string_view text);

// A valid name of C and C++: other characters become `_`, and keywords get a `_` appended.
std::string c_name(std::string_view name);

}  // namespace nautilus::bundle
