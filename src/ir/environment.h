// SPDX-License-Identifier: Apache-2.0
// The values a program runs with: sizes, scalars, input tensors. Shared by all evaluators and,
// later, by the runtime.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "diag/diagnostic.h"
#include "expr/tensor.h"
#include "ir/decl.h"

namespace nautilus::ir {

struct Environment {
  std::map<std::string, int64_t, std::less<>> sizes;
  std::map<std::string, expr::Value, std::less<>> scalars;
  std::map<std::string, expr::Tensor, std::less<>> tensors;
};

// Value of an expression of sizes and scalars. All its variables must be known.
expr::Value evaluate(Expr e, const Environment& env);
int64_t evaluate_size(Expr e, const Environment& env);
// Dimensions of a type; a negative extent counts as 0. Empty if there are more elements than fit.
std::optional<std::vector<int64_t>> evaluate_shape(const Exprs& dims, const Environment& env);

// The number of multiprocessors that interpreters assume: few, so that small problems have parts of
// several steps.
inline constexpr int64_t kInterpretedSms = 6;

// Adds the machine's and computed sizes of a program to the sizes of a call.
void compute_sizes(const Program& program, Environment& env);

// A scalar's value from text: `0.5`, `-3`, `true`. Empty (and why) if it is not a number, or does
// not fit the dtype.
std::optional<expr::Value> parse_scalar(std::string_view text, DType dtype, std::string* error);

// Finds sizes from the shapes of the tensors given: `M` from a dimension `M`, `Hk` from a dimension
// `4*Hk`. Then fills the rest from hints and the scalars from their defaults, and checks facts.
// False if something was reported.
bool complete(const Program& program, const std::map<std::string, TensorType>& inputs,
              Environment& env, diag::Sink& sink);

}  // namespace nautilus::ir
