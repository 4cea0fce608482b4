// SPDX-License-Identifier: Apache-2.0
// An expression compiled for evaluation over a run of points along one axis, with error bounds:
// every instruction (block_program.h) works on a register of up to kRun lanes, or of one lane where
// its node does not vary along the axis.
#pragma once

#include <string>
#include <vector>

#include "spec/eval/block_program.h"
#include "spec/eval/noise.h"

namespace nautilus::spec {

constexpr int64_t kRun = 256;

struct OutsideRead {
  std::string tensor;
  size_t dimension;
  int64_t index;
  int64_t extent;
  bool is_by_rounding;  // a kernel may decide the guard the other way, and then it reads there
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
