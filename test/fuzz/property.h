// SPDX-License-Identifier: Apache-2.0
// What must hold for a text, whatever it is, and for a program the checker accepts.
#pragma once

#include <string>

#include "sandbox.h"

namespace nautilus::fuzz {

// An accepted program prints and parses to itself at every level, means the same in every evaluator
// and after every pass, and simplification ends where it says. `seed` draws inputs and sizes.
Verdict check_program(const std::string& text, uint64_t seed);

// An accepted program compiles to kernels that compute what it says.
Verdict check_compiled(const std::string& text, uint64_t seed);

// Any text: it is accepted, or what is wrong is reported in valid UTF-8; if it is accepted it
// prints and parses to itself, and lowering works or reports.
Verdict check_text(const std::string& text);

}  // namespace nautilus::fuzz
