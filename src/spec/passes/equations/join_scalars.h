// SPDX-License-Identifier: Apache-2.0
// Scalar factors of an element become one, so that it is multiplied once.
//
//   tanh(S[i, j] * scale / cap)
// becomes
//   tanh(S[i, j] * (scale / cap))
//
// Only where there are two: a division alone stays a division. Exactness class: exact over the
// reals where the divisor is not zero. Test: test/spec/join_scalars.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> join_scalars(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
