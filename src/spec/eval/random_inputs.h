// SPDX-License-Identifier: Apache-2.0
// Inputs for a program when the caller gives none.
//
// Integers get values the program can use: an input that indexes a dimension stays inside it, one
// that is compared with an axis stays within the axis's range. The same seed gives the same values
// on every machine.
#pragma once

#include "ir/environment.h"
#include "spec/ops.h"

namespace nautilus::spec {

enum class InputKind : uint8_t {
  Normal,  // floats normal with deviation 1, rounded to the dtype
  Exact,   // small integers: every order of summation gives the same bits (float scalars become ln
           // 2)
};

// Adds the inputs that `env` does not hold yet. Sizes must be known. False if a tensor is too large
// (reported).
bool add_random_inputs(const ir::Program& program, InputKind kind, uint64_t seed,
                       ir::Environment& env, expr::ExprPool& pool, diag::Sink& sink);

// For InputKind::Exact: gives float scalars without a value ln 2, so that exponentials of integers
// times such a scale are powers of two. To be called before ir::complete; a scalar keeps its
// default if ln 2 would violate its facts.
void set_exact_scalars(const ir::Program& program, ir::Environment& env);

}  // namespace nautilus::spec
