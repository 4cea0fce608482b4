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

#include "expr/dtype.h"

namespace nautilus::emit {

// Where the first operand of a product is: in registers, or in shared memory.
enum class FirstOperand : uint8_t { RowsByDepth, DepthByRows, Registers };

// The dtypes of a product's operands.
struct OperandDTypes {
  expr::DType a;
  expr::DType b;

  auto operator<=>(const OperandDTypes&) const = default;
};

// The name of the wrapper for products of n columns: `wgmma_bf16_n128`, or with both dtypes where
// they differ.
std::string product_name(const OperandDTypes& dtypes, int n, FirstOperand first);

struct Instructions {
  // operands, columns, the first operand
  std::set<std::tuple<OperandDTypes, int, FirstOperand>> products;
  // arrays named by waits: is it packed (u32), length
  std::set<std::vector<std::pair<bool, int>>> waits;

  std::string text() const;
};

}  // namespace nautilus::emit
