// SPDX-License-Identifier: Apache-2.0
// Device wrappers of matrix instructions: one template per shape and operand form a kernel uses,
// and one wait per list of register arrays that becomes valid.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nautilus::emit {

// Where the first operand of a product is: in registers, or in shared memory.
enum class FirstOperand : uint8_t { RowsByDepth, DepthByRows, Registers };

struct Instructions {
  // dtype of the operands ("bf16"), columns, the first operand
  std::set<std::tuple<std::string, int, FirstOperand>> products;
  // arrays named by waits: is it packed (u32), length
  std::set<std::vector<std::pair<bool, int>>> waits;

  std::string text() const;
};

}  // namespace nautilus::emit
