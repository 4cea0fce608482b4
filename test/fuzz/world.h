// SPDX-License-Identifier: Apache-2.0
// What a generated program declares: sizes, tensors, scalars, functions.
//
// The generator knows the value every size has at its hint, so that it can keep the work of a
// program small, and how an extent was made (`N * 2`), so that it can write index expressions that
// provably stay inside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "expr/dtype.h"

namespace nautilus::fuzz {

struct Extent {
  enum class Form : uint8_t { Dim, Constant, Scaled, Shifted, Quotient };
  std::string text;
  int64_t value = 1;  // at the hints
  Form form = Form::Constant;
  int base = -1;       // Scaled: base * factor; Shifted: base + factor; Quotient: base / factor
  int64_t factor = 1;  // at the hints
  std::string factor_text;
  int divisor = -1;  // Quotient by an extent
};

struct Tensor {
  std::string name;
  expr::DType dtype = expr::DType::F32;  // storage
  std::vector<int> dims;                 // extents
  bool is_input = true;
};

struct Scalar {
  std::string name;
  expr::DType dtype = expr::DType::F32;
};

// A function of f32 arguments. `reduces`: its result no longer depends on its axis.
struct Function {
  std::string name;
  bool has_axis = false;
  bool reduces = false;
  int params = 1;
};

struct World {
  std::vector<Extent> extents;
  std::vector<Tensor> tensors;
  std::vector<Scalar> scalars;
  std::vector<Function> functions;
};

}  // namespace nautilus::fuzz
