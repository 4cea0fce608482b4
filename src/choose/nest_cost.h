// SPDX-License-Identifier: Apache-2.0
// Predicted time of kernels without tiles, to choose among forms of them. Each is bound by one of
//
//   memory      bytes that the kernel touches, each tensor once for each time that it walks over it
//   cache       what is read again and again, and lines of which a warp uses one element each
//   issue       operations of all threads
//   latency     loads that one thread, or one CTA with a row, waits for one after the other
//
// Kernels are compared at several sizes where sizes are not known when compiling: all small, all
// usual, and each of them large with the others small; a hint that is larger counts instead. The
// time at each counts relative to what reading and writing the program's tensors once takes there,
// so that a form which is hopeless at one of them is not taken for what it gains at another.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "choose/patch_points.h"
#include "ir/environment.h"
#include "lower/rows/row_group.h"
#include "target/target.h"

namespace nautilus::choose {

class NestCosts {
 public:
  NestCosts(const ir::Program& program, const target::Target& target, expr::ExprPool& pool);

  // Sizes at which a kernel is launched: where the condition holds, or where it does not. Without
  // one: at all.
  struct Where {
    expr::Expr condition;
    bool holds = true;
  };
  // The cost of one kernel with a thread, or so many lanes, for each point, or for each line of
  // several. `kept`: what is read after it, or an output. `across`: an axis along which a thread
  // has points besides; null if there is none. `held`: of loops with at most so many turns, what
  // several read is read once.
  double points(std::span<const lower::MapNest> nests, int64_t lanes,
                const std::set<std::string>& kept, int64_t each, const Where& where,
                expr::Expr across = {}, int64_t held = 0) const;
  // Of one whose threads have patches.
  double patches(std::span<const lower::MapNest> nests, const std::set<std::string>& kept,
                 const Patch& patch, const Where& where) const;
  // Of one whose cycles at given sizes are known.
  double over_sizes(const std::function<double(const ir::Environment&)>& cycles) const;
  // Of one along rows, or of elements.
  double rows(const lower::RowGroup& group, const std::set<std::string>& kept) const;

  // About how long an axis is, by hints alone where there are some.
  double hinted_extent(expr::Expr e) const { return extent(e, hinted_); }

  // Whether the hints are sizes that were asked for.
  bool is_asked() const { return is_asked_; }

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
  double points_at(std::span<const lower::MapNest> nests, int64_t lanes,
                   const std::set<std::string>& kept, int64_t each, expr::Expr across, int64_t held,
                   const Problem& at) const;
  double far_bytes(const lower::RowGroup& group, const Problem& at) const;
  double rows_at(const lower::RowGroup& group, const std::set<std::string>& kept,
                 const Problem& at) const;

  const target::Target& target_;
  expr::ExprPool& pool_;
  std::map<std::string, ir::TensorType, std::less<>> types_;
  std::vector<Problem> problems_;
  Problem hinted_;
  bool is_asked_ = false;
};

}  // namespace nautilus::choose
