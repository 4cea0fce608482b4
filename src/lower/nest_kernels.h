// SPDX-License-Identifier: Apache-2.0
// Kernels of nests without a grid loop, as the lines of the schedule say (asked_kernels.h): which
// nests share one, and of which form it is: rows (row_kernel.h), points or parts
// (points_alternatives.h), terms that are scattered (scatter_nests.h), or rows that are put in
// order (sort_kernel.h). Tests: test/schedule/lines_of_rows.sched, test/lower/rows.naut,
// test/lower/split.naut
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/pass.h"
#include "lower/asked_kernels.h"
#include "lower/kernel/point_answers.h"
#include "lower/points/split_reduction.h"
#include "lower/program_nests.h"
#include "lower/rows/row_group.h"

namespace nautilus::lower {

class NestKernels {
 public:
  // `rules`: answer for kernels that have no name in the schedule. `of_named`: for what lines of
  // the others do not say; null: they are complete.
  NestKernels(const ir::Program& program, ProgramNests& state, PointAnswers& rules,
              PointAnswers* of_named, ir::PassContext& context);

  // The kernel of nest `i`, which has another form than a grid, and of those that share it; `i` is
  // then the next nest. False if something was reported.
  bool next(size_t& i);
  // The same without a kernel, if it would be one along rows; whether it is.
  bool skips_rows(size_t& i);
  // Refuses lines for kernels that were not made; whether there were none.
  bool end() { return asked_.end(context_); }

 private:
  PointAnswers* rules_for(const AskedKernel& asked) {
    return &asked == &usual_ ? &rules_ : of_named_;
  }
  AskedKernel& kernel_for(const MapNest& nest, bool is_from_parts);
  size_t sharing_end(size_t i, const AskedKernel& asked);
  static bool names_each_once(const AskedKernel& asked);
  bool are_all_there(size_t begin, size_t end, AskedKernel& asked);
  bool rows(size_t& i, size_t end, const AskedKernel& asked);
  bool points(size_t& i, size_t end, const AskedKernel& asked);
  bool parts(size_t& i, size_t limit, const AskedKernel& asked);
  bool scatter(size_t& i, size_t limit, const AskedKernel& asked);
  bool sort(size_t& i, size_t limit, const AskedKernel& asked);
  void add_front(LoweredKernel front, const LoweredKernel& kernel, const ir::Block& read_last);
  std::vector<MapNest> nests_from(size_t begin, size_t end) const;
  ir::Block members_of(size_t begin, size_t end, std::string_view name, const AskedKernel& asked);

  // nest_splits.cc: reductions in parts.
  std::string refuse_parts(const MapNest& nest, const AskedKernel& asked);
  const ir::Op* split_in(size_t begin, size_t end) const;
  bool split(size_t i, const AskedKernel& asked);
  bool is_of_parts_alone(AskedKernel& asked);
  bool whole_or_parts(size_t i, const MapNest& nest, const SplitReduction& s,
                      const AskedKernel& asked);

  ProgramNests& state_;
  PointAnswers& rules_;
  PointAnswers* of_named_;
  ir::PassContext& context_;
  const target::Target& target_;
  ir::Name machine_;
  expr::Facts facts_;
  AskedKernels asked_;
  AskedKernel usual_;                     // of a nest that no kernel is named for
  std::set<std::string> is_split_;        // results of reductions that were looked at
  std::set<std::string> parts_;           // buffers of parts
  std::map<std::string, ir::Op> splits_;  // lines about results that have parts
};

}  // namespace nautilus::lower
