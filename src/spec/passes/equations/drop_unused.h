// SPDX-License-Identifier: Apache-2.0
// Removes equations that no output needs. Inputs stay: they are the caller's. Test:
// test/spec/drop_unused.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> drop_unused(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
