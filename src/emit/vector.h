// SPDX-License-Identifier: Apache-2.0
// Register work that moves whole pieces of tensors, in accesses of 16 bytes.
//
// A thread may move 16 bytes at once if its innermost registers are neighbours in memory, the
// address is aligned, and a condition holds for all of a piece or for none of it. The first and the
// last are shown here (with facts such as `N % 8 == 0`); the plan checks address and strides of the
// tensor (KernelText::vectors). Along a line of registers the kernel itself may ask: pieces that
// are aligned and inside are moved as one, the others element by element. Otherwise all elements
// are.
#pragma once

#include "emit/elementwise.h"

namespace nautilus::emit {

void emit_load(const matile::Load& op, const RegisterScope& scope, Writer& out);

// As emit_put, in pieces; false, and nothing written, if that is not possible.
bool emit_put_vectors(const matile::Put& op, const matile::Domain& domain,
                      const RegisterScope& scope, Writer& out);

// True in one of the threads that hold copies of the same element; "" if there are no copies.
std::string one_of_copies(const layout::Layout& layout);

}  // namespace nautilus::emit
