// SPDX-License-Identifier: Apache-2.0
// Random cascades: products, element-wise work, reductions along rows and columns, products again.
// They are what schedules are made for; nothing in them has a name that anybody knows.
#pragma once

#include <cstdint>
#include <string>

namespace nautilus::fuzz {

// The same seed gives the same text on every machine. Sizes are hints, often next to a tile's.
std::string generate_cascade(uint64_t seed);

}  // namespace nautilus::fuzz
