// SPDX-License-Identifier: Apache-2.0
// nautilus_arguments, checked against the program and brought into the form that plans take.
#pragma once

#include <vector>

#include "failure.h"
#include "plan/frame.h"
#include "plan/launcher.h"
#include "program.h"

namespace nautilus::capi {

enum class Wanted : uint8_t {
  Shapes,   // tensors may be absent, data is not looked at; floats as for AnyFloat
  Memory,   // every tensor, of its declared dtype
  AnyFloat  // every tensor; floats may be of another float dtype
};

struct Arguments {
  std::vector<plan::TensorView> tensors;  // by the program's numbers
  std::vector<uint8_t> is_given;
  std::vector<plan::Call::Value> values;
  std::vector<int64_t> dense;  // strides that the caller left out

  plan::Call call() const { return {tensors, values}; }
};

// Allocates nothing if `out` was used before with as many.
Failure read_arguments(const State& state, const nautilus_arguments* from, Wanted wanted,
                       Arguments& out);

// A frame of the program's declarations with these arguments, evaluated: its sizes are solved.
Failure solve(const State& state, const Arguments& arguments, plan::Frame& frame);

// `bf16[B, M, 128]`, as declared.
std::string declared_text(const driver::Signature::Tensor& tensor);

}  // namespace nautilus::capi
