// SPDX-License-Identifier: Apache-2.0
// Tensors as text for people and tests, and from and to .npy files.
#pragma once

#include <optional>
#include <string>

#include "base/npy.h"
#include "expr/tensor.h"

namespace nautilus::driver {

// Rows of the last axis with six digits; long rows and many rows are cut unless `max_elements`
// allows them.
std::string tensor_text(const expr::Tensor& tensor, int64_t max_elements);

// Values of an array as a tensor of `dtype`. Floats are rounded to the dtype; integers must fit it;
// raw 1- and 2-byte items
// (|V1, |V2, or unsigned integers) given for an 8- or 16-bit float dtype are its bit patterns.
std::optional<expr::Tensor> from_npy(const base::NpyArray& array, expr::DType dtype,
                                     std::string* error);

// float64, float32, float16, integers and bool unchanged; bf16 and f8 as float32, which holds them
// exactly.
base::NpyArray to_npy(const expr::Tensor& tensor);

}  // namespace nautilus::driver
