// SPDX-License-Identifier: Apache-2.0
// Which of the kernels that put parts together the plan launches, by its sizes and the lines
// `serves` of all but the first:
//
//   lanes 8; serves to 32768 points with 16 parts    launch O grid where(131072 <= points, 0,
//   each 4; serves from 131072 points            ->               where(16 <= n and points <=
//   32768,
//                                                                       0, (points + 127) / 128))
//                                                    launch O_2 grid where(16 <= n and points <=
//                                                    ... launch O_3 grid where(131072 <= points,
//                                                    ...
//
// Text test: test/lower/part_nests.scalar
#pragma once

#include <string>
#include <vector>

#include "decision/decisions.h"
#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

class PartsBySizes {
 public:
  // `first`: runs for all sizes that no other one serves.
  PartsBySizes(const LoweredKernel& first, expr::ExprPool& pool);

  // Of the kernels together, where it is the same for all sizes.
  std::optional<int64_t> points() const;

  // Why a kernel cannot be launched as the line says; empty if it can.
  std::string refuse(const decision::Serves& line) const;

  // The launch of `other` for these sizes, where none that was added before serves; the first one's
  // leaves them out.
  void add(LoweredKernel& first, LoweredKernel& other, const decision::Serves& line);

 private:
  struct Served {
    decision::Serves line;
    bool is_all;  // of these sizes: the kernel needs nothing else of them
    ir::Expr condition;
  };

  expr::ExprPool& pool_;
  ir::Expr points_;
  ir::Expr parts_;  // null: not known
  std::vector<Served> added_;
};

}  // namespace nautilus::lower
