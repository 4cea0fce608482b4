// SPDX-License-Identifier: Apache-2.0
// Device wrappers of matrix instructions: one template per shape and operand form a kernel uses,
// and one wait per list of register arrays that becomes valid.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nautilus::emit {

struct Instructions {
  // dtype of the operands ("bf16"), columns, A from registers
  std::set<std::tuple<std::string, int, bool>> products;
  // arrays named by waits: is it packed (u32), length
  std::set<std::vector<std::pair<bool, int>>> waits;

  std::string text() const;
};

}  // namespace nautilus::emit
