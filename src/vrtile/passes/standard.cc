// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/standard.h"

#include "vrtile/passes/drop_unused_tiles.h"
#include "vrtile/passes/fold_fills.h"
#include "vrtile/passes/gauge.h"
#include "vrtile/passes/hoist_invariant.h"
#include "vrtile/passes/merge_equal_tiles.h"
#include "vrtile/passes/operand_cast.h"
#include "vrtile/passes/pipeline_loops.h"
#include "vrtile/passes/reverse_loops.h"
#include "vrtile/passes/specialise_segments.h"

namespace nautilus::vrtile {

const std::vector<TilePass>& standard_passes() {
  static const std::vector<TilePass> passes = {
      {"merge_equal_tiles", merge_equal_tiles, "of tiles made in the same way one stays"},
      {"operand_cast", operand_cast,
       "f32 operands of products get the 16-bit dtype of the other operand"},
      // Behind the casts: an operand that a loop only multiplies with is rounded once, and its f32
      // form takes no registers in the loop.
      {"hoist_invariant", hoist_invariant,
       "tiles that are the same in every iteration are made before the loop"},
      {"reverse_loops", reverse_loops,
       "loops that end at different steps in different groups, or masked, run backwards"},
      {"gauge", gauge, "running references are followed only when they moved far"},
      {"pipeline_loops", pipeline_loops,
       "products that need other products run one iteration late"},
      // What the peeled first iteration computes from the initial values.
      {"fold_fills", fold_fills, "constants go into what reads them"},
      // Last, so that the parts of a loop share one prologue and one epilogue.
      {"specialise_segments", specialise_segments,
       "steps that no mask touches get a loop of their own"},
      {"drop_unused_tiles", drop_unused_tiles, "tiles that no store needs go"},
  };
  return passes;
}

std::optional<ir::Program> run_standard_passes(const ir::Program& program,
                                               ir::PassContext& context) {
  std::optional<ir::Program> current = program;
  for (const TilePass& pass : standard_passes()) {
    current = pass.run(*current, context);
    if (!current) return std::nullopt;
  }
  return current;
}

}  // namespace nautilus::vrtile
