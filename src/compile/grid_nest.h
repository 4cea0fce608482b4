// SPDX-License-Identifier: Apache-2.0
// The path of one scheduled nest (`for ... grid`) through VR-tile to a tile kernel.
//
// On this path the nest is a program of its own, named like its kernel: results of other kernels
// are its inputs, and tensors that they need its outputs. A trace shows this program.
#pragma once

#include <optional>
#include <string>

#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"

namespace nautilus::compile {

// The kernel of one grid nest of a scalar program. Nothing, and why, if some op of it has no tile
// form. A plan that needs the number of multiprocessors calls it `sms`; the caller declares it.
std::optional<lower::LoweredKernel> lower_grid_nest(const ir::Program& program, const ir::Op& nest,
                                                    std::string_view name, lower::FreshNames& names,
                                                    ir::PassContext& context,
                                                    lower::NoKernel* refused);

// The rest of the path, from a VR-tile program with this one nest. The program's name is the
// kernel's; `after`: the passes up to this one have run.
std::optional<lower::LoweredKernel> lower_tiles(const ir::Program& program,
                                                const std::string& after, lower::FreshNames& names,
                                                ir::PassContext& context, lower::NoKernel* refused);

// A program of this nest alone, with its tensors as inputs and outputs accordingly.
ir::Program tile_unit(const ir::Program& tiles, const ir::Op& nest, std::string name);

}  // namespace nautilus::compile
