// SPDX-License-Identifier: Apache-2.0
// Register tiles brought to another layout (`convert`), each way as its digits ask for.
#pragma once

#include "emit/vector.h"

namespace nautilus::emit {

// `meeting` is used by conversions through shared memory only.
void emit_convert(const matile::Convert& op, const RegisterScope& scope, const Meeting& meeting,
                  Writer& out);

}  // namespace nautilus::emit
