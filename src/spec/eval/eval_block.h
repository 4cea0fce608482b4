// SPDX-License-Identifier: Apache-2.0
// An expression compiled for evaluation over a run of points along one axis, with error bounds.
//
// Every node becomes one instruction on a register of up to kRun lanes (one lane where the node
// does not vary along the axis). Nodes that are exact in every kernel (inputs, indices, integer
// arithmetic) carry no bounds. A read under `where` has a mask register and touches memory only
// where its guard holds.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "expr/error_bound.h"
#include "ir/environment.h"
#include "spec/eval/noise.h"

namespace nautilus::spec {

constexpr int64_t kRun = 256;

// A tensor of the evaluator; no bounds means exact.
struct BoundedTensor {
  expr::Tensor value;
  std::vector<double> bound;
};
using BoundedTensors = std::map<std::string, BoundedTensor, std::less<>>;

struct OutsideRead {
  std::string tensor;
  size_t dimension;
  int64_t index;
  int64_t extent;
  bool is_by_rounding;  // a kernel may decide the guard the other way, and then it reads there
};

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
  std::string name;                       // Read
  std::vector<int> indices;
  std::vector<int64_t> strides;
  int mask = -1;
  bool is_strided = false;   // every index is uniform, or the run's axis itself
  bool is_position = false;  // an index as a float, in a program with coarse functions
};

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
  int compile(ir::Expr e, int mask);
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

// Registers of one thread.
class BlockMachine {
 public:
  // With noise, values have errors instead of bounds; with `is_product_exact` a last product has no
  // error.
  explicit BlockMachine(const BlockProgram& program, Noise noise = {},
                        bool is_product_exact = false);

  // Evaluates `count` points: axes as given, the run axis from its given value on. False if a read
  // left its tensor.
  bool run(const std::vector<int64_t>& axes, int64_t count);

  // Values and bounds of one register, lane by lane; uniform registers repeat their only lane.
  struct Lanes {
    const expr::Value* values;
    const double* bounds;  // null: exact
    int64_t stride;
    expr::Bounded operator[](int64_t i) const {
      return {values[i * stride], bounds ? bounds[i * stride] : 0};
    }
  };
  Lanes result() const { return lanes(program_.code().size() - 1); }
  const OutsideRead& outside() const { return outside_; }

 private:
  bool read(size_t index, int64_t count);
  bool read_strided(const Instruction& in, size_t index, int64_t count);
  void elementwise(size_t index, int64_t count);
  void add_noise(size_t index, int64_t count);
  Lanes lanes(size_t reg) const;
  bool fail(const Instruction& in, size_t dimension, int64_t value, bool is_by_rounding);

  const BlockProgram& program_;
  Noise noise_;
  Noise noise_here_;  // at the point that is evaluated
  bool is_product_exact_;
  std::vector<std::vector<expr::Value>> values_;
  std::vector<std::vector<double>> bounds_;
  std::vector<int64_t> axes_;
  OutsideRead outside_;
};

}  // namespace nautilus::spec
