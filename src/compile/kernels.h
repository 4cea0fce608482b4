// SPDX-License-Identifier: Apache-2.0
// From a program below the equations to finished kernels and their plan: of a scalar program every
// nest, of a VR-tile program every grid, of an MA-tile program what is still in nest form. A
// program that comes from a pass (`after`) goes on behind it.
#pragma once

#include <string_view>
#include <vector>

#include "compile/passes.h"

namespace nautilus::compile {

// A program of level scalar, vrtile or matile. The result is verified; a kernel that has no final
// form is reported.
std::optional<ir::Program> to_kernels(const ir::Program& program, ir::PassContext& context);

// Of a scheduled scalar program: kernels for its nests are chosen and made, without what the passes
// of stage Plan do for all of them.
std::optional<ir::Program> nests_to_kernels(const ir::Program& program, ir::PassContext& context);
// The rest of to_kernels: what those passes do with the kernels that came of it.
std::optional<ir::Program> plan_kernels(ir::Program kernels, ir::PassContext& context);

// The pass of that name, as a row of the table: every nest becomes a kernel.
std::optional<ir::Program> program_to_matile(const ir::Program& program, ir::PassContext& context);

// Stage Kernel, from nest form to final form; verified. Test: test/matile/passes/golden_*.matile.
std::optional<ir::Program> finish_kernels(const ir::Program& program, ir::PassContext& context);

// The passes of a stage that follow `after`: all of them if it stands before the stage, none if
// behind it, or if it is empty.
std::vector<const PassInfo*> passes_after(Stage stage, std::string_view after);

}  // namespace nautilus::compile
