// SPDX-License-Identifier: Apache-2.0
// How the loops of a nest use a ring: what decides how many slots it gets.
#pragma once

#include "matile/passes/roles/nest_resources.h"

namespace nautilus::matile {

// Of a slot with all its tiles.
int64_t slot_bytes(const NestRing& ring, const target::Copies& copies);

// Whether a loop fetches the ring and otherwise has only products.
bool is_in_product_loop(const Role& role, const NestRing& ring);

// Whether a product reads the ring's slots.
bool is_operand(const Role& role, const NestRing& ring);

// The depth of what may be the first operand of a product: its columns, or its rows where it is
// stored as depth by rows.
using OperandDepths = std::map<std::string, int64_t, std::less<>>;
OperandDepths operand_depths(const Role& role, const std::vector<NestRing>& rings);

// Slots that keep the copies of a ring ahead of a loop with register work: as many as cover the
// time of a copy with products. 0 for rings of other loops.
int64_t slots_ahead(const Role& role, const NestRing& ring, const OperandDepths& depths,
                    const target::Target& target);

}  // namespace nautilus::matile
