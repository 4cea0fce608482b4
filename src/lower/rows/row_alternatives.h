// SPDX-License-Identifier: Apache-2.0
// When the plan launches each of the kernels of a group (row_shapes.h), and how it sees a row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/pass.h"
#include "lower/rows/row_shapes.h"

namespace nautilus::lower {

struct RowAlternative {
  RowShape shape;
  std::string suffix;    // of the kernel's name
  expr::Expr limit;      // the number of columns, as a kernel sees it
  expr::Expr condition;  // of the launch
  expr::Expr length{};   // of the rows that its rows are pieces of, as a kernel sees it; or null
};

// One for each shape. The first runs where no other does, and stands in for the others where
// tensors are not aligned; each of the others runs where none before it does. Plan ops that they
// need are added to `plan`. Nothing if a shape is left without any number of columns: its number is
// in `unreached`.
std::optional<std::vector<RowAlternative>> row_alternatives(const std::vector<RowShape>& shapes,
                                                            const RowContext& context,
                                                            ir::Block& plan, size_t* unreached);

// What kernels of a group are named after.
std::string row_stem(const RowGroup& group);

}  // namespace nautilus::lower
