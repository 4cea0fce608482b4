// SPDX-License-Identifier: Apache-2.0
// Which kernels work along rows has, by the number of columns: row_kernel.h makes each of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lower/kernel_parts.h"
#include "lower/row_group.h"

namespace nautilus::lower {

struct RowVariant {
  std::string suffix;
  int64_t columns = 0;      // of the tiles
  int64_t by = 1;           // neighbours of a thread
  bool is_resident = true;  // a row fits the tiles
  expr::Expr limit;         // the number of columns, as a kernel sees it
  expr::Expr condition;     // of the launch
  int64_t groups = 1;       // that share a row: each has as many columns as its tiles
};

// Each for the sizes of its condition. The first takes any size, and stands in for the others where
// tensors are not aligned. Plan ops that they need are added to `plan`.
std::vector<RowVariant> row_variants(const RowGroup& group, const std::set<std::string>& kept,
                                     const std::map<std::string, ir::TensorType>& buffers,
                                     const expr::Facts& facts, FreshNames& names,
                                     expr::ExprPool& pool, ir::Block& plan);

// Reads along the row that all rows share and that no reduction needs: they may be loaded piece by
// piece while elements are written.
std::vector<expr::Expr> shared_by_rows(const RowGroup& group, expr::ExprPool& pool);

// What kernels of a group are named after.
std::string row_stem(const RowGroup& group);
// Element-wise work: a row need not stay together.
bool has_elements_only(const RowGroup& group);
// Registers of one of so many threads for a tile of so many columns.
int64_t row_tile_registers(expr::DType dtype, int64_t columns, int64_t threads);

}  // namespace nautilus::lower
