// SPDX-License-Identifier: Apache-2.0
// The block graph: statements, their loops and what they need from each other. The scheduler's view
// of a scalar program.
//
//   s1 m : map i < M, reduce j < N max
//     reads T[i, j] from s0
//
// A statement is what defines one buffer: a store, or an init with its updates. Text form for
// people and tests; the graph is recomputed from the program whenever it is needed.
#pragma once

#include <string>
#include <vector>

#include "scalar/ops.h"

namespace nautilus::scalar {

struct GraphLoop {
  ir::Name name;
  ir::Expr extent;
  LoopKind kind;
};

struct GraphRead {
  ir::Expr access;  // the Read expression
  int producer;     // statement that writes the buffer; -1: an input
};

struct Statement {
  int id;
  ir::Name target;
  Role role;
  std::vector<GraphLoop> loops;  // outermost first, reduce loops as they stand
  bool is_reduction = false;
  expr::Reducer reducer = expr::Reducer::Sum;
  std::vector<GraphRead> reads;  // in order of first occurrence, without repetition
  std::vector<int> consumers;
};

struct Graph {
  std::string name;
  std::vector<Statement> statements;
};

Graph block_graph(const ir::Program& program);
std::string print(const Graph& graph);

}  // namespace nautilus::scalar
