// SPDX-License-Identifier: Apache-2.0
// Predicted time of row and point kernels, to choose among them. Each is bound by one of
//
//   memory      bytes that the kernel touches, each tensor once for each time that it walks over it
//   cache       elements that are read repeatedly, and cache lines of which a warp uses one element
//   each
//   issue       operations of all threads
//   latency     loads that one thread, or one CTA with a row, waits for one after the other
//
// Kernels are compared at several sizes where sizes are not known when compiling: all small, all
// usual, and each of them large with the others small; a larger hint counts instead. The time at
// each of these sizes counts relative to reading and writing the program's tensors once there. So a
// form that is hopeless at some sizes is not chosen for its gain at others.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "choose/points/patch_points.h"
#include "ir/environment.h"
#include "lower/kernel/point_answers.h"
#include "lower/places/sort_nests.h"
#include "lower/rows/row_group.h"
#include "scalar/ops.h"
#include "target/target.h"

namespace nautilus::choose {

class NestCosts {
 public:
  NestCosts(const ir::Program& program, const target::Target& target, expr::ExprPool& pool);

  // Sizes at which a kernel is launched: where the condition holds, or where it does not. Without a
  // condition: at all sizes.
  struct Where {
    expr::Expr condition;
    bool holds = true;
  };
  // One kernel with a thread, or several lanes, for each point or for each piece of several points.
  struct Points {
    std::vector<lower::MapNest> nests = {};
    std::set<std::string> kept = {};  // tensors that are read after it, or outputs
    Where where = {};
    int64_t lanes = 1;
    int64_t each = 1;
    expr::Expr across = {};  // a further axis along which a thread has points, or null
    // In loops with at most this many turns, elements that several loops read are loaded once.
    int64_t held = 0;
  };
  double points(const Points& kernel) const;
  // The same with patches.
  double patches(const Points& kernel, const Patch& patch) const;
  // Of a kernel with known cycles at given sizes.
  double over_sizes(const std::function<double(const ir::Environment&)>& cycles) const;
  // Of a row kernel, or of elements. `may_share`: lanes may share its rows, where they are short.
  double rows(const lower::RowGroup& group, const std::set<std::string>& kept,
              bool may_share) const;

  // Of kernels that put rows in order, one for each length; those of longer rows put runs of them
  // in order and merge these.
  double sort(const lower::SortNests& order, std::span<const lower::SortShape> shapes,
              const std::set<std::string>& kept) const;

  // About how long an axis is, by hints alone where there are some.
  double hinted_extent(expr::Expr e) const { return extent(e, hinted_); }

  // Whether the hints are sizes that were asked for.
  bool is_asked() const { return is_asked_; }

  // The cycles of a cost where all sizes are known or were asked for; else 0.
  double cycles_of(double cost) const {
    return problems_.size() == 1 ? cost / problems_[0].weight : 0;
  }

  // The same sizes and weights on a machine with other costs.
  NestCosts on(const target::Target& target) const;

  // A buffer that the program does not declare yet.
  void declare(ir::Name buffer, const ir::TensorType& type) {
    types_.insert_or_assign(std::string(buffer.str()), type);
  }

 private:
  struct Traffic;
  // The sizes at which kernels are compared, and how much their time there counts.
  struct Problem {
    ir::Environment sizes;
    double weight = 1;
  };

  static bool is_known(expr::Expr e, const Problem& at);
  double extent(expr::Expr e, const Problem& at) const;
  double count(const ir::Axes& axes, const Problem& at) const;
  double bytes_of(ir::Name tensor, const Problem& at) const;
  double memory_cycles(const Traffic& traffic) const;
  bool is_run(const Where& where, const Problem& at) const;
  double points_at(const Points& kernel, const Problem& at) const;
  double patches_at(const Points& kernel, const Patch& patch, const Problem& at) const;
  double add_work(const Points& kernel, const lower::MapNest& nest, const Problem& at,
                  Traffic& traffic) const;
  void add_scatter(const scalar::Scatter& scatter, double terms, double points, expr::Expr fast,
                   const Problem& at, Traffic& traffic) const;
  double sort_at(const lower::SortNests& order, const lower::SortShape& shape,
                 const std::set<std::string>& kept, const Problem& at) const;
  double far_bytes(const lower::RowGroup& group, const Problem& at) const;
  double rows_at(const lower::RowGroup& group, const std::set<std::string>& kept, bool may_share,
                 const Problem& at) const;

  const target::Target* target_;
  expr::ExprPool* pool_;
  std::map<std::string, ir::TensorType, std::less<>> types_;
  std::vector<Problem> problems_;
  Problem hinted_;
  bool is_asked_ = false;
};

// The cost of one kernel on a machine: what stays of a choice when the costs of the machine change.
using Price = std::function<double(const NestCosts&)>;

}  // namespace nautilus::choose
