// SPDX-License-Identifier: Apache-2.0
// Runs a scalar program, statement by statement.
//
// With Arithmetic::Oracle floats are fp64 and only casts round, as in the spec evaluator: on
// unscheduled programs both agree bit for bit. With Arithmetic::Declared every float operation is
// rounded to its dtype, as plain code for that dtype would: the results must be within the error
// bounds of the spec evaluator.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "diag/diagnostic.h"
#include "ir/environment.h"
#include "scalar/ops.h"

namespace nautilus::scalar {

enum class Arithmetic : uint8_t { Oracle, Declared };

// `env` must be complete and hold every input buffer. Returns the outputs; empty if an access left
// its buffer.
std::optional<std::map<std::string, expr::Tensor>> interpret(const ir::Program& program,
                                                             const ir::Environment& env,
                                                             Arithmetic arithmetic,
                                                             diag::Sink& sink);

}  // namespace nautilus::scalar
