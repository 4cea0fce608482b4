// SPDX-License-Identifier: Apache-2.0
// The list of passes, and the function that runs them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/pass.h"

namespace nautilus::driver {

// What a program is known to satisfy; passes need and give these.
enum Invariant : uint32_t {
  kNone = 0,
  kReductionsSplit = 1,  // a reduction is the root of its equation
};

struct PassInfo {
  std::string_view name;
  std::string_view from;  // level
  std::string_view to;
  ir::Pass run;
  uint32_t needs;
  uint32_t gives;
  std::string_view summary;
  bool is_exact = true;  // the same bits; else exact over the reals (docs/semantics.md)
};

// In the order in which compilation runs them.
const std::vector<PassInfo>& pipeline();
// Rewrites that are exact over the reals only; scheduling runs them, the plain lowering does not.
const std::vector<PassInfo>& algebra_passes();
const PassInfo* find_pass(std::string_view name);

struct RunOptions {
  // Each program that a pass changed is written to <dump_dir>/NNN-after-<pass>.<level>.
  std::string dump_dir;
};

// Runs one pass and verifies the result; a result that does not verify is a compiler bug.
std::optional<ir::Program> run_pass(const PassInfo& pass, const ir::Program& program,
                                    ir::PassContext& context);

// Runs the pipeline from the program's level until `level` is reached.
std::optional<ir::Program> lower_to(std::string_view level, const ir::Program& program,
                                    ir::PassContext& context, const RunOptions& options = {});

// Rewrites that pay for some programs only: scheduling looks at what comes of them.
struct Algebra {
  bool takes_apart = false;  // differences from a value of the row leave products
  bool gathers = false;      // operands that no box can bring as they lie are copied first

  bool operator==(const Algebra&) const = default;
};

// The passes on level spec that scheduling runs, in order.
std::vector<std::string_view> algebra_sequence(Algebra algebra = {});
// From level spec to an unscheduled scalar program, by way of the algebra passes: what scheduling
// starts from.
std::optional<ir::Program> lower_with_algebra(const ir::Program& program, ir::PassContext& context,
                                              Algebra algebra = {});

}  // namespace nautilus::driver
