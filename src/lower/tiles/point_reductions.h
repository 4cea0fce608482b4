// SPDX-License-Identifier: Apache-2.0
// What scalar code at the points of a tile computes from the parts of a split axis: numbers in the
// order in which loops over the parts make them final, and results.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "expr/expr.h"
#include "matile/ops.h"

namespace nautilus::lower {

// A number of a point. `level`: the loop over the parts behind which it is final; -1: none.
struct PointNumber {
  expr::Expr var;
  expr::Expr init;         // or the value of a `let`
  expr::Expr update = {};  // null: it does not change
  expr::Expr part = {};    // loop variable of the update
  int level = -1;
  bool is_let = false;
  expr::Expr element = {};  // what stands for it: an element of a tile, or the value itself
};

struct PointResult {
  expr::Expr condition;  // null: always
  matile::Write write;
};

struct PointReductions {
  std::vector<PointNumber> numbers;
  std::unordered_map<expr::Expr, size_t> by_name;
  std::vector<PointResult> results;
  expr::Expr parts;  // how many
};

// False, and why, if the code does more than reduce parts and write results.
bool read_reductions(const ir::Block& body, expr::ExprPool& pool, PointReductions& out,
                     std::string* why);

}  // namespace nautilus::lower
