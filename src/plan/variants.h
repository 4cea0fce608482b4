// SPDX-License-Identifier: Apache-2.0
// Launches with tensors that the kernels of a program cannot use directly: the same program with
// aligned copies (matile/passes/memory/repack.h), compiled when such a tensor is first met.
#pragma once

#include "plan/executable.h"

namespace nautilus::plan {

// For Executable::set_variants; program, pool and device must outlive the executable.
Executable::VariantMaker repacked_variants(const ir::Program& program, expr::ExprPool& pool,
                                           runtime::Device& device, std::string architecture);

// Names of the tensors that may be repacked: all but scratch, because kernels share its contents.
std::set<std::string> repackable_tensors(const ir::Program& program);

}  // namespace nautilus::plan
