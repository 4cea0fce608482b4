// SPDX-License-Identifier: Apache-2.0
// The levels there are.
#pragma once

#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "ir/op.h"

namespace nautilus::compile {

const std::vector<const ir::Level*>& levels();
const ir::Level* find_level(std::string_view name);

// Runs the verifier of the program's level.
bool verify(const ir::Program& program, diag::Sink& sink);

}  // namespace nautilus::compile
