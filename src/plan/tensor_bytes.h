// SPDX-License-Identifier: Apache-2.0
// Tensors of the evaluators as the bytes a kernel sees, and back.
#pragma once

#include <vector>

#include "expr/tensor.h"

namespace nautilus::plan {

// Row-major, little endian.
std::vector<unsigned char> to_bytes(const expr::Tensor& tensor);
expr::Tensor from_bytes(expr::DType dtype, std::vector<int64_t> shape,
                        const std::vector<unsigned char>& bytes);

}  // namespace nautilus::plan
