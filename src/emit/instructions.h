// SPDX-License-Identifier: Apache-2.0
// Device wrappers of matrix instructions: one template per shape and operand form a kernel uses,
// and one wait per list of register arrays that becomes valid.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
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

// Registers that a wait names: `float x[64]`.
struct RegisterArray {
  std::string_view type;
  int length;

  auto operator<=>(const RegisterArray&) const = default;
};

struct Instructions {
  // operands, columns, the first operand
  std::set<std::tuple<OperandDTypes, int, FirstOperand>> products;
  std::set<std::vector<RegisterArray>> waits;  // arrays that they name

  std::string text() const;
};

}  // namespace nautilus::emit
