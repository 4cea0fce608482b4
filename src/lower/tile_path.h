// SPDX-License-Identifier: Apache-2.0
// The path of scheduled nests (`for ... grid`): through VR-tile to a kernel of tiles.
#pragma once

#include <optional>
#include <string>

#include "ir/pass.h"
#include "lower/kernel_parts.h"

namespace nautilus::lower {

// The kernel of one grid nest of a scalar program. Nothing, and why, if some part of it has no
// counterpart in tiles. A plan that needs the number of multiprocessors calls it `sms`; the caller
// declares it.
std::optional<KernelParts> lower_grid_nest(const ir::Program& program, const ir::Op& nest,
                                           std::string_view name, FreshNames& names,
                                           ir::PassContext& context, std::string* why);

}  // namespace nautilus::lower
