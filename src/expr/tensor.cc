// SPDX-License-Identifier: Apache-2.0
#include "expr/tensor.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace nautilus::expr {

namespace {
constexpr int64_t kMaxElements = int64_t{1}
                                 << 32;  // 32 GiB of elements: more is a mistake, not a test
}

std::optional<int64_t> element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  if (count > kMaxElements) return std::nullopt;
  return count;
}

Tensor Tensor::filled(DType dtype, std::vector<int64_t> shape, Value value) {
  const auto count = element_count(shape);
  NAUT_CHECK(count, "a tensor of shape {}", shape_text(shape));
  Tensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.data.assign(static_cast<size_t>(*count), value);
  return t;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  for (size_t i = 0; i < a.data.size(); ++i) {
    const bool both_nan = is_float(a.dtype) && std::isnan(a.data[i].f) && std::isnan(b.data[i].f);
    if (!both_nan && a.data[i].i != b.data[i].i) return false;
  }
  return true;
}

}  // namespace nautilus::expr
