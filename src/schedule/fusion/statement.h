// SPDX-License-Identifier: Apache-2.0
// The statements of an unscheduled scalar program: one per buffer, as scheduling sees them.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "scalar/ops.h"

namespace nautilus::schedule {

using expr::Expr;

struct Statement {
  int id = 0;
  ir::Name target;
  expr::DType dtype = expr::DType::F32;
  scalar::Role role = scalar::Role::Temp;
  ir::Axes axes;  // of the target, in its order
  // The indices of the target's element that belongs to a place of the axes; empty: the axes
  // themselves. `y[f]` of elements `z[f / n, f % n]` has axes g and p, and the place `g * n + p`.
  std::vector<Expr> place;
  // The condition that this element exists: the last group of an axis may have fewer. Null: always.
  Expr in_place;
  ir::Axes reduce;  // empty: element-wise
  expr::Reducer reducer = expr::Reducer::Sum;
  Expr init;  // of a reduction
  Expr value;
  std::vector<Expr> reads;  // elements that the value reads, operands first
  std::vector<Expr> init_reads;
  std::vector<size_t> ops;      // positions in the program's body
  std::vector<int> reads_from;  // statements with targets that it reads
  std::vector<int> read_by;     // statements that read its target, in their order
  // Cannot be fused: it has several nests, is an argmax, or its target is not indexed by its axes.
  // Only its place in the order matters.
  bool is_opaque = false;

  bool is_reduction() const { return !reduce.empty(); }
};

struct StatementList {
  std::vector<Statement> statements;
  std::map<std::string, int, std::less<>> writer;  // by buffer

  std::unordered_map<expr::Name, int> writer_of;  // the same

  const Statement* producer(expr::Name buffer) const {
    const auto it = writer_of.find(buffer);
    return it == writer_of.end() ? nullptr : &statements[static_cast<size_t>(it->second)];
  }
};

StatementList statements_of(const ir::Program& program, expr::ExprPool& pool);

}  // namespace nautilus::schedule
