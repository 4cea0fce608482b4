// SPDX-License-Identifier: Apache-2.0
#include "plan/tensor_bytes.h"

#include <cstring>

#include "base/check.h"

namespace nautilus::plan {

std::vector<unsigned char> to_bytes(const expr::Tensor& tensor) {
  const auto width = static_cast<size_t>(expr::bytes(tensor.dtype));
  std::vector<unsigned char> out(tensor.data.size() * width);
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    const uint64_t bits = expr::is_float(tensor.dtype)
                              ? expr::encode(tensor.dtype, tensor.data[i].f)
                              : static_cast<uint64_t>(tensor.data[i].i);
    std::memcpy(out.data() + i * width, &bits, width);
  }
  return out;
}

expr::Tensor from_bytes(expr::DType dtype, std::vector<int64_t> shape,
                        const std::vector<unsigned char>& bytes) {
  const auto width = static_cast<size_t>(expr::bytes(dtype));
  expr::Tensor t = expr::Tensor::zeros(dtype, std::move(shape));
  NAUT_CHECK(bytes.size() == t.data.size() * width, "{} bytes for {} elements", bytes.size(),
             t.data.size());
  for (size_t i = 0; i < t.data.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    if (expr::is_float(dtype))
      t.data[i] = expr::float_value(expr::decode(dtype, bits));
    else
      t.data[i] = expr::int_value(expr::wrap_to(dtype, static_cast<int64_t>(bits)));
  }
  return t;
}

}  // namespace nautilus::plan
