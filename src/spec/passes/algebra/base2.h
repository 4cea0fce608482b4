// SPDX-License-Identifier: Apache-2.0
// Natural exponentials become powers of two, which the hardware computes directly; the constant
// joins existing scalar factors.
//
//   exp(T[i, j] * scale - m[i] * scale)
// becomes
//   exp2(T[i, j] * (scale * log2(e)) - m[i] * (scale * log2(e)))      with the number for log2(e)
//
// Exactness class: exact over the reals (the constant is rounded). Test: test/spec/base2.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> base2(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
