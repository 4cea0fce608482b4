// SPDX-License-Identifier: Apache-2.0
// Whether a scheduled nest has a kernel of tiles, found by lowering it alone. A schedule is made of
// nests that have one; the others go back to the statements that they were made of.
#pragma once

#include <string>

#include "ir/pass.h"

namespace nautilus::compile {

// Empty if the grid nest of the scheduled program becomes a kernel, else why it does not.
std::string tile_refusal(const ir::Program& program, const ir::Op& nest, ir::PassContext& context);

}  // namespace nautilus::compile
