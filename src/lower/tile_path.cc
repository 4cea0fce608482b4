// SPDX-License-Identifier: Apache-2.0
#include "lower/tile_path.h"

namespace nautilus::lower {

std::optional<KernelParts> lower_grid_nest(const ir::Program&, const ir::Op&, std::string_view,
                                           FreshNames&, ir::PassContext&, std::string* why) {
  *why = "kernels of tiles are not made from scheduled nests yet";
  return std::nullopt;
}

}  // namespace nautilus::lower
