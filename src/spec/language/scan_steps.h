// SPDX-License-Identifier: Apache-2.0
// How equations that need each other read each other, found from the text alone: which axis they
// step along, which of them are states, and in which order a step computes them.
//
//   U[t,e] = v[t,e] - sum[d] k[t,d] * S[t-1,d,e]       U reads S at the step before: S is a state
//   S[t,d,e] = S[t-1,d,e] + k[t,d] * U[t,e] from 0     S reads U in the same step
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "spec/language/math_syntax.h"

namespace nautilus::spec {

struct ScanSteps {
  std::vector<const EquationSyntax*> order;  // in a step
  std::map<const EquationSyntax*, size_t> along;
  std::map<const EquationSyntax*, bool> is_state;
  bool is_up = true;
};

// A read of one of the equations by one of them.
struct ScanRead {
  const EquationSyntax* reader;
  const EquationSyntax* read;
  const expr::Syntax* place;
};

// What an index says: an axis of the reader, moved by a number; or something else.
struct StepIndex {
  int axis = -1;  // among those on the left side of the reader
  int64_t offset = 0;
};
StepIndex step_index(const expr::Syntax& index, const EquationSyntax& reader);

// Finds the axes that the reads step along; false, and reported, if there are none that fit.
// `steps` has no order yet; without any axis no equation reads a previous step.
bool find_steps(const std::vector<ScanRead>& reads, ScanSteps& steps, diag::Sink& sink);

}  // namespace nautilus::spec
