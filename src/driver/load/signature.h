// SPDX-License-Identifier: Apache-2.0
// What a caller has to know about a program: its tensors, sizes and scalars, and which sizes follow
// from the shapes of its inputs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/decl.h"

namespace nautilus::driver {

struct Signature {
  struct Tensor {
    std::string name;
    ir::TensorType type;
    bool is_output = false;
    std::vector<std::string> dims;  // as text
  };
  enum class Kind : uint8_t { Size, Static, Scalar };
  struct Value {
    std::string name;
    Kind kind = Kind::Size;
    expr::DType dtype = expr::DType::I64;
    ir::OptionalInt hint;      // of a size; of a static one its value
    std::string default_text;  // of a scalar; empty if it has none
    // Of a size: the input and the dimension that determine it, given the sizes that others
    // determine; -1 if none does.
    int tensor = -1;
    int dimension = -1;
  };
  std::vector<Tensor> tensors;  // inputs, then outputs, in the order of the text
  std::vector<Value> values;    // in the order of the text

  // -1 if there is none.
  int tensor(std::string_view name) const;
  int value(std::string_view name) const;
};

// For programs of the math language or of level MA-tile; programs of the levels between have no
// list of their tensors.
Signature signature_of(const ir::Program& program);

}  // namespace nautilus::driver
