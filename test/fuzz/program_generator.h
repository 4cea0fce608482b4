// SPDX-License-Identifier: Apache-2.0
// Random programs of the math language that use all of it; most of them are accepted.
#pragma once

#include <cstdint>
#include <string>

namespace nautilus::fuzz {

// The same seed gives the same text on every machine.
std::string generate_program(uint64_t seed);

}  // namespace nautilus::fuzz
