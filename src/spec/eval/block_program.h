// SPDX-License-Identifier: Apache-2.0
// An expression as instructions on registers, one for each of its nodes (eval_block.h runs them).
// Nodes that are exact in every kernel (inputs, indices, integer arithmetic) carry no bounds. A
// read under `where` has a mask register and touches memory only where its guard holds.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "expr/error_bound.h"
#include "ir/environment.h"

namespace nautilus::spec {

// A tensor as the evaluator keeps it; no bounds means exact.
struct BoundedTensor {
  expr::Tensor value;
  std::vector<double> bound;
};
using BoundedTensors = std::map<std::string, BoundedTensor, std::less<>>;

struct Instruction {
  expr::Op op;
  expr::DType dtype;
  expr::DType operand;
  bool is_varying = false;
  bool is_exact = true;
  int args[3] = {-1, -1, -1};
  expr::Value constant{.i = 0};
  int axis = -1;                          // Var: position among the axes
  const BoundedTensor* tensor = nullptr;  // Read
  std::string name = {};                  // Read
  std::vector<int> indices = {};
  std::vector<int64_t> strides = {};
  int mask = -1;
  bool is_strided = false;   // every index is uniform, or the run's axis itself
  bool is_position = false;  // an index as a float, in a program with coarse functions
};

// The oracle takes `0.1` as it is written, a kernel as the nearest number of its dtype.
double constant_bound(expr::Op op, expr::DType dtype, expr::Value value);

class BlockProgram {
 public:
  // `axes` are the loop variables, `run_axis` the position of the one that runs along the lanes.
  BlockProgram(ir::Expr body, const ir::Axes& axes, int run_axis, const BoundedTensors& tensors,
               const ir::Environment& env, expr::Functions functions);

  const std::vector<Instruction>& code() const { return code_; }
  int run_axis() const { return run_axis_; }
  expr::Functions functions() const { return functions_; }

 private:
  bool is_coarse_position(expr::Expr e);
  // The register of an expression, evaluated where the register `mask` says; -1: everywhere.
  int compile(ir::Expr e, int mask);
  Instruction instruction_of(ir::Expr e, int mask);
  void take_read(Instruction& in, ir::Expr e, int mask);
  void take_operation(Instruction& in, ir::Expr e, int mask);
  int branch_mask(int condition, bool is_first, int mask);
  // An operand: the instruction varies and is exact as it does.
  int use(Instruction& in, int reg) const;
  int emit(Instruction instruction);
  bool has_read(ir::Expr e);

  const ir::Axes& axes_;
  int run_axis_;
  const BoundedTensors& tensors_;
  const ir::Environment& env_;
  expr::Functions functions_;
  std::vector<Instruction> code_;
  std::vector<std::unordered_map<ir::Expr, int>> memo_;  // by mask + 1
  std::unordered_map<ir::Expr, bool> has_read_;
};

}  // namespace nautilus::spec
