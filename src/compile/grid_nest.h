// SPDX-License-Identifier: Apache-2.0
// The way of one scheduled nest (`for ... grid`): through VR-tile to a kernel of tiles.
//
// On its way the nest is a program of its own, named like its kernel: what other kernels hand over
// is an input, what they need an output. That program is what a trace shows.
#pragma once

#include <optional>
#include <string>

#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"

namespace nautilus::compile {

// The kernel of one grid nest of a scalar program. Nothing, and why, if some part of it has no
// counterpart in tiles. A plan that needs the number of multiprocessors calls it `sms`; the caller
// declares it.
std::optional<lower::LoweredKernel> lower_grid_nest(const ir::Program& program, const ir::Op& nest,
                                                    std::string_view name, lower::FreshNames& names,
                                                    ir::PassContext& context, std::string* why);

// The rest of the way, from a VR-tile program with this one nest. The program's name is the
// kernel's; `after`: the passes up to this one have run.
std::optional<lower::LoweredKernel> lower_tiles(const ir::Program& program,
                                                const std::string& after, lower::FreshNames& names,
                                                ir::PassContext& context, std::string* why);

// The nest of a program alone, with the roles that its tensors have then.
ir::Program tile_unit(const ir::Program& tiles, const ir::Op& nest, std::string name);

}  // namespace nautilus::compile
