// SPDX-License-Identifier: Apache-2.0
// The passes of the VR-tile level in the order in which compilation runs them.
#pragma once

#include <string_view>
#include <vector>

#include "ir/pass.h"

namespace nautilus::vrtile {

struct TilePass {
  std::string_view name;
  ir::Pass run;
  std::string_view summary;
};

const std::vector<TilePass>& standard_passes();

// All of them, one after the other.
std::optional<ir::Program> run_standard_passes(const ir::Program& program,
                                               ir::PassContext& context);

}  // namespace nautilus::vrtile
