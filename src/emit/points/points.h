// SPDX-License-Identifier: Apache-2.0
// CUDA text of a kernel of scalar code (matile::Points).
#pragma once

#include "emit/emit.h"

namespace nautilus::emit {

KernelText emit_points(const ir::Program& program, const matile::Kernel& kernel,
                       expr::ExprPool& pool);

}  // namespace nautilus::emit
