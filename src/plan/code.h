// SPDX-License-Identifier: Apache-2.0
// Expressions of sizes and scalars as postfix code over numbered slots: the same results as
// ir::evaluate, without names, trees and lookups. Launches evaluate the plan with it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "expr/bounds/affine.h"
#include "expr/scalar_ops.h"

namespace nautilus::plan {

// The slot of a name's value.
using Slots = std::map<std::string, int, std::less<>>;

class Code {
 public:
  // Every variable must have a slot.
  static Code of(expr::Expr e, const Slots& slots);
  // A polynomial of sizes.
  static Code of(const expr::Poly& poly, const Slots& slots);

  // `stack` has room for depth() values. Equal to ir::evaluate for all values.
  expr::Value run(const expr::Value* slots, expr::Value* stack) const {
    // Most codes of a plan are one constant or one size.
    if (steps_.size() != 1) return run_steps(slots, stack);
    const Step& s = steps_[0];
    return s.kind == Kind::Slot ? slots[s.index] : s.constant;
  }

  int depth() const { return depth_; }

  // The integer operators of index arithmetic have steps of their own; rare operators go through
  // expr::apply, as in every evaluator.
  enum class Kind : uint8_t { Constant, Slot, Add, Sub, Mul, FloorDiv, Mod, Min, Max, Apply };
  struct Step {
    Kind kind = Kind::Constant;
    expr::Op op = expr::Op::IntConst;       // Apply
    expr::DType result = expr::DType::I64;  // also of a constant
    expr::DType operand = expr::DType::I64;
    int index = 0;  // of the slot; of Apply: operands
    expr::Value constant{.i = 0};
  };
  // For printers; a step takes its operands from the newest values.
  const std::vector<Step>& steps() const { return steps_; }

 private:
  expr::Value run_steps(const expr::Value* slots, expr::Value* stack) const;
  void add(expr::Expr e, const Slots& slots);
  void push(Step step, int operands);

  std::vector<Step> steps_;
  int height_ = 0;
  int depth_ = 0;
};

}  // namespace nautilus::plan
