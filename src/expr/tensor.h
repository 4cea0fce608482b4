// SPDX-License-Identifier: Apache-2.0
// Dense tensors of the evaluators: row-major, floats as fp64, integers and bool as 64-bit integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "expr/scalar_ops.h"

namespace nautilus::expr {

struct Tensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<Value> data;

  static Tensor filled(DType dtype, std::vector<int64_t> shape, Value value);
  static Tensor zeros(DType dtype, std::vector<int64_t> shape) {
    return filled(dtype, std::move(shape), is_float(dtype) ? float_value(0) : int_value(0));
  }
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  // Element as fp64, whatever the dtype.
  double number(int64_t i) const {
    return is_float(dtype) ? data[static_cast<size_t>(i)].f
                           : static_cast<double>(data[static_cast<size_t>(i)].i);
  }
};

// Product of the extents; empty extents give 0. Empty optional on overflow or beyond what fits in
// memory.
std::optional<int64_t> element_count(const std::vector<int64_t>& shape);
// `[2, 3]` for an index or a shape.
std::string shape_text(const std::vector<int64_t>& shape);
// Row-major strides in elements.
std::vector<int64_t> strides_of(const std::vector<int64_t>& shape);
// Same dtype, shape and bits (NaN equals NaN).
bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace nautilus::expr
