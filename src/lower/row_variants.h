// SPDX-License-Identifier: Apache-2.0
// Which kernels work along rows has, by the number of columns: row_kernel.h makes each of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lower/kernel_parts.h"
#include "lower/row_group.h"

namespace nautilus::lower {

inline constexpr int64_t kRowThreads = 128;
// Registers of a thread for what is kept of a row: three CTAs of them fit, each with the loads of a
// row of 64 KiB in flight.
inline constexpr int64_t kRowRegisters = 128;
// The same for what is loaded before anything is computed, if some of it could be loaded later: a
// reduction of so much leaves room for five CTAs.
inline constexpr int64_t kEarlyRegisters = 96;

// Rows longer than this are shared by several groups of threads. (8192 columns of 16 bits in a
// kernel for 16384: one group 0.0756 and 0.0861 ms, four 0.0772 and 0.0977, rmsnorm and softmax of
// 8192 rows.)
inline constexpr int64_t kGroupColumns = 8192;
inline constexpr int64_t kRowGroups = 4;
// Registers of a thread of such groups, if two CTAs of them shall fit a multiprocessor, or one;
// those of them that tiles leave free; and what may be loaded early if it could be loaded later:
// two CTAs fit, with a few numbers of the row.
inline constexpr int64_t kPairRegisters = 64;
inline constexpr int64_t kAloneRegisters = 128;
inline constexpr int64_t kBesideRow = 24;
inline constexpr int64_t kEarlyRegistersOfPair = kPairRegisters - kBesideRow - 4;

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
// Registers of a thread for a tile of so many columns.
int64_t row_tile_registers(expr::DType dtype, int64_t columns);

}  // namespace nautilus::lower
