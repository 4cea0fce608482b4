// SPDX-License-Identifier: Apache-2.0
// The points of an equation, and their values: lanes run along one axis, of the result or of what
// is reduced (eval_block.h), ranges of runs are for threads.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "spec/equations.h"
#include "spec/eval/eval_block.h"
#include "spec/eval/eval_reduction.h"

namespace nautilus::spec {

// The points of an equation, and how lanes run through them.
struct PointSpace {
  ir::Axes axes;  // of the result, then those that are reduced
  std::vector<int64_t> extents;
  size_t outer = 0;          // axes of the result
  int64_t length = 1;        // of the reduction
  int run = -1;              // the axis along which lanes run; -1: none
  bool runs_inside = false;  // it is a reduced one
  int step = -1;             // an axis of the result of which there is one element; -1: none
  int64_t at = 0;            // which
};

PointSpace point_space(const Let& let, const ir::Environment& env);
// Lanes run along the last axis of the result, or along the last reduced axis where that is much
// longer.
void choose_run(PointSpace& space, bool is_reduce);

// The first of numbered items that read outside a tensor. Everything before it is still run, so
// that the message does not depend on threads.
class FirstFailure {
 public:
  bool is_there() const { return item_ != INT64_MAX; }
  bool is_behind(int64_t item) const { return item < item_; }
  const OutsideRead& outside() const { return outside_; }
  void add(int64_t item, const OutsideRead& outside) {
    const std::lock_guard lock(mutex_);
    if (item >= item_) return;
    item_ = item;
    outside_ = outside;
  }

 private:
  std::mutex mutex_;
  std::atomic<int64_t> item_ = INT64_MAX;
  OutsideRead outside_;
};

// One equation, compiled.
struct PointsTask {
  const Let& let;
  const PointSpace& space;
  int64_t run_extent;  // of results along the run
  const BlockProgram& code;
  const BlockProgram* init;   // null: none; so are the others
  const BlockProgram* parts;  // magnitudes of what kernels may take apart
  const Reduction* reduction;
  Noise noise;
  BoundedTensor& out;
};

// Runs of lanes that a row of so many results has.
inline int64_t runs_of(int64_t extent) { return (extent + kRun - 1) / kRun; }
// Evaluates the runs from `begin` to `end`, of those of all rows.
void evaluate_points(const PointsTask& task, int64_t begin, int64_t end, FirstFailure& failure);

}  // namespace nautilus::spec
