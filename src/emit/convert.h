// SPDX-License-Identifier: Apache-2.0
// Conversion of register tiles to another layout (`convert`), one way after the other.
#pragma once

#include "emit/meetings.h"

namespace nautilus::emit {

// Only conversions through shared memory use `meeting`.
void emit_convert(const matile::Convert& op, const RegisterScope& scope, const Meeting& meeting,
                  Writer& out);

}  // namespace nautilus::emit
