// SPDX-License-Identifier: Apache-2.0
// The oracle: evaluates a spec program in fp64 and says how far a legal kernel may be from the
// result.
//
// Semantics in docs/semantics.md. Two evaluators: `evaluate` is blocked and threaded and also
// returns error bounds; `evaluate_by_definition` follows the equations point by point, reductions
// nested as written, and is the reference in tests of the first.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostic.h"
#include "ir/environment.h"
#include "spec/ops.h"

namespace nautilus::spec {

struct Result {
  expr::Tensor value;
  // For each element: the largest difference the numerics contract allows (docs/language.md,
  // section 8).
  std::vector<double> bound;
  bool is_sampled = false;  // the bounds: see judge.h
};
using Results = std::map<std::string, Result>;

struct EvalOptions {
  int threads = 0;  // 0: all
  // Tensors to return in addition to the outputs; `all` returns those of every equation.
  bool all = false;
  // If not 0, every float operation has a random error, about as large as a kernel's may be; the
  // results then have no bounds.
  uint64_t noise_seed = 0;
};

// `env` must be complete (ir::complete) and hold every input. Empty if a guarded or gathered read
// left its tensor.
std::optional<Results> evaluate(const ir::Program& program, const ir::Environment& env,
                                const EvalOptions& options, expr::ExprPool& pool, diag::Sink& sink);
std::optional<std::map<std::string, expr::Tensor>> evaluate_by_definition(
    const ir::Program& program, const ir::Environment& env, diag::Sink& sink);

}  // namespace nautilus::spec
