// SPDX-License-Identifier: Apache-2.0
// From a program below the equations to finished kernels and their plan: every nest of a scalar
// program, every grid of a VR-tile program, every kernel of an MA-tile program that is still in
// nest form. A program that comes from a pass (`after`) continues after that pass.
#pragma once

#include <string_view>
#include <vector>

#include "compile/passes.h"

namespace nautilus::compile {

// A program of level scalar, vrtile or matile. The result is verified; a kernel that has no final
// form is reported.
std::optional<ir::Program> to_kernels(const ir::Program& program, ir::PassContext& context);

// For a scheduled scalar program: chooses and makes kernels for its nests, without the passes of
// stage Plan.
std::optional<ir::Program> nests_to_kernels(const ir::Program& program, ir::PassContext& context);
// The rest of to_kernels: the passes of stage Plan on these kernels.
std::optional<ir::Program> plan_kernels(ir::Program kernels, ir::PassContext& context);

// The pass of that name, as a row of the table: every nest becomes a kernel.
std::optional<ir::Program> program_to_matile(const ir::Program& program, ir::PassContext& context);

// Stage Kernel, from nest form to final form; verified. Test: test/matile/passes/golden_*.matile.
std::optional<ir::Program> finish_kernels(const ir::Program& program, ir::PassContext& context);

// The passes of a stage that follow `after`: all of them if `after` precedes the stage or is empty,
// none if it comes later.
std::vector<const PassInfo*> passes_after(Stage stage, std::string_view after);

}  // namespace nautilus::compile
