// SPDX-License-Identifier: Apache-2.0
// Kernels as MA-tile programs on disk, next to their machine code: a program that was lowered
// before starts without scheduling and passes.
//
// The name of an entry is a hash of everything that determines its content: the program with its
// sizes, hints and target, the text of a given schedule, and the build of the compiler. Like
// machine code it is not verified again. A truncated or foreign file is a miss
// (runtime/kernel_cache.h), and so is a text that does not parse; it is then replaced.
#pragma once

#include "driver/kernels/lower_to_kernels.h"
#include "runtime/kernel_cache.h"

namespace nautilus::driver {

// As make_kernels, with notes. A request for steps (`request.trace`) always makes the kernels.
std::optional<Kernels> stored_kernels(const ir::Program& program, const KernelRequest& request,
                                      const runtime::KernelCache& cache, Unit& unit,
                                      std::string* error);
// Whether stored_kernels would find them on disk.
bool are_stored(const ir::Program& program, const KernelRequest& request,
                const runtime::KernelCache& cache);

}  // namespace nautilus::driver
