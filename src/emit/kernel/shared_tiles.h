// SPDX-License-Identifier: Apache-2.0
// Tiles between registers and shared memory: taken from slots of rings, and stored through staging
// buffers.
#pragma once

#include "emit/kernel/kernel_scope.h"
#include "layout/stmatrix.h"

namespace nautilus::emit {

void emit_take(const matile::Take& op, KernelScope& scope);
void emit_store(const matile::Store& op, KernelScope& scope);

// Stops if the addresses that both write are not those that layout/stmatrix.h defines.
void check_store_formula(const layout::FragmentStore& f);

}  // namespace nautilus::emit
