// SPDX-License-Identifier: Apache-2.0
// How a program became its kernels, as text for people.
#pragma once

#include "driver/scheduling.h"

namespace nautilus::driver {

// The derivation: the equations, each algebra pass that changed them with its exactness class, the
// schedule, what was rolled with which repair and what was refused and why, the candidates for
// tiles with their floors, of each kernel with products its roles, and of the first its main loop.
std::string explain(const ir::Program& program, Unit& unit);
// Of it what each kernel computes: repairs and refusals, no sizes and costs.
std::string fusion(const ir::Program& program, Unit& unit);

}  // namespace nautilus::driver
