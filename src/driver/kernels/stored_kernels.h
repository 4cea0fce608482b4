// SPDX-License-Identifier: Apache-2.0
// Kernels as MA-tile programs on disk, next to their machine code: a start of a program that was
// lowered before reads what scheduling and all passes would find again.
//
// An entry is named by everything that its content follows from: the program with its sizes, hints
// and target, the text of the schedule that was given, and the build of the compiler. Like machine
// code it is not verified again; a file that is cut or foreign is a miss (runtime/kernel_cache.h),
// and so is one whose text does not parse, which is then replaced.
#pragma once

#include "driver/kernels/lower_to_kernels.h"
#include "runtime/kernel_cache.h"

namespace nautilus::driver {

// As make_kernels, with notes. Steps (`request.trace`) are of kernels that are made now: such a
// request does not look.
std::optional<Kernels> stored_kernels(const ir::Program& program, const KernelRequest& request,
                                      const runtime::KernelCache& cache, Unit& unit,
                                      std::string* error);
// Whether it would not have to make them.
bool are_stored(const ir::Program& program, const KernelRequest& request,
                const runtime::KernelCache& cache);

}  // namespace nautilus::driver
