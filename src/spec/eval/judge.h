// SPDX-License-Identifier: Apache-2.0
// Whether a result may be that of a program: compared with the oracle, by the program's tolerance
// or by bounds, if these are narrow enough to tell right from wrong.
//
// docs/semantics.md says what counts, and when an element or an output is not judged.
#pragma once

#include <string>

#include "spec/eval/eval.h"

namespace nautilus::spec {

// An element is judged if the allowed difference is at most this fraction of its size, or of the
// typical size in its output where that is larger ...
inline constexpr double kWidestAllowed = 0.5;
// ... and an output if at most this fraction of its elements is not judged.
inline constexpr double kMostUnjudged = 0.25;

// As `evaluate`. An output that its bounds do not judge gets sampled bounds if those judge it: from
// evaluations in which every operation has a random error, as large as a kernel's may be.
std::optional<Results> evaluate_to_judge(const ir::Program& program, const ir::Environment& env,
                                         const EvalOptions& options, expr::ExprPool& pool,
                                         diag::Sink& sink);

// False if the allowed difference is too wide to tell right from wrong.
bool is_judged(const Result& want, const ir::Numerics& numerics);

enum class Verdict : uint8_t { Accepted, Wrong, NotJudged };

// Where and by how much a candidate differs most from the oracle, in units of the allowed
// difference.
struct Comparison {
  Verdict verdict = Verdict::Accepted;
  int64_t worst_index = -1;  // flat index of the largest ratio
  double worst_ratio = 0;    // |got - want| / allowed
  double worst_allowed = 0;  // at that index
  double max_abs_error = 0;
  int64_t mismatches = 0;
  int64_t unjudged = 0;  // elements
};
Comparison compare(const expr::Tensor& got, const Result& want, const ir::Numerics& numerics);

// The message of a comparison that does not accept, such as "element 3 is 1, the oracle's 2 +- 0.1;
// 1 of 9 elements differ". Empty if it accepts.
std::string objection(const Comparison& c, const expr::Tensor& got, const Result& want);

}  // namespace nautilus::spec
