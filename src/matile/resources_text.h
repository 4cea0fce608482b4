// SPDX-License-Identifier: Apache-2.0
// The resources of a program's kernels (resources.h) as text, for people and tests.
#pragma once

#include <string>

#include "matile/ops.h"

namespace nautilus::matile {

// The program is verified and all its kernels are in final form.
std::string resources_text(const ir::Program& program);

}  // namespace nautilus::matile
