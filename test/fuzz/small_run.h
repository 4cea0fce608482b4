// SPDX-License-Identifier: Apache-2.0
// Runs a program nobody designed, if it is small enough: what the verifier accepts must evaluate or
// report, never crash.
#pragma once

#include <string>

#include "driver/load/load.h"

namespace nautilus::fuzz {

// Every size is 3; tiles as values run as loops, kernels are only read and printed. Returns what
// disagrees between the evaluators, or an empty string (also where the program is too large to run,
// or a diagnostic was reported).
std::string run_small(const ir::Program& program, driver::Unit& unit);

}  // namespace nautilus::fuzz
