// SPDX-License-Identifier: Apache-2.0
// The steps of reductions that lines of named kernels ask for (`inner`), as nests: those that the
// cover of a schedule by rule has where it chose these lines, in the same order (cover_steps.cc).
// Tests: test/choose/fail_inner.scalar, src/driver/kernels/complete_schedules_test.cc
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "algebra/sign.h"
#include "ir/pass.h"
#include "lower/asked_kernels.h"
#include "lower/program_nests.h"

namespace nautilus::choose {

// What first steps store, in the order in which they were made.
using StepBuffers = std::vector<std::pair<ir::Name, ir::TensorType>>;

// Changes the nests. Nothing if a line was refused.
std::optional<StepBuffers> make_asked_steps(const ir::Program& program, lower::ProgramNests& nests,
                                            lower::AskedKernels& asked, const algebra::Signs& signs,
                                            ir::PassContext& context);

}  // namespace nautilus::choose
