// SPDX-License-Identifier: Apache-2.0
// Loops that may fetch everything first (`fetch early|late`): those with one product, of an operand
// that is computed. Everything they load is needed for the product, and may arrive at once.
#pragma once

#include "ir/op.h"

namespace nautilus::lower {

bool has_one_computed_product(const ir::Block& body);
// Whether other work stands in front of a load for the product.
bool has_late_operand(const ir::Block& body);
ir::Block loads_first(const ir::Block& body);

}  // namespace nautilus::lower
