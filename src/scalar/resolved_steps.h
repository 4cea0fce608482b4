// SPDX-License-Identifier: Apache-2.0
// What the interpreter runs: statements and expressions of a program whose names are resolved; a
// part of interp.cc.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "diag/source.h"
#include "expr/scalar_ops.h"
#include "scalar/ops.h"

namespace nautilus::scalar {

// An expression with its names resolved: variables to slots, reads to buffers.
struct Code {
  expr::Op op;
  expr::DType dtype;
  expr::DType operand;
  expr::Value constant{.i = 0};
  int slot = -1;
  expr::Tensor* buffer = nullptr;
  std::string_view name;
  std::vector<const Code*> args;
  // The innermost loop variable that the value depends on, if it depends on nothing else; the value
  // holds as long as that variable was not set again.
  int innermost = -1;
  bool reads = false;
  bool is_kept = false;
  mutable uint64_t kept_at = 0;
  mutable expr::Value kept{.i = 0};
};

// Ops with their expressions resolved.
struct Step {
  Kind kind;
  diag::Span span;
  std::vector<int> slots = {};        // For, Loop
  std::vector<int64_t> extents = {};  // For
  const Code* from = nullptr;         // Loop
  const Code* to = nullptr;           // Loop
  bool is_down = false;               // Loop
  bool is_grid = false;               // For
  std::vector<Step> body = {};        // For, Loop, If
  expr::Tensor* target = nullptr;
  std::string_view target_name = {};
  expr::Tensor* best = nullptr;
  std::vector<const Code*> indices = {};
  const Code* value = nullptr;
  const Code* position = nullptr;
  const Code* condition = nullptr;
  expr::Reducer reducer = expr::Reducer::Sum;
};

}  // namespace nautilus::scalar
