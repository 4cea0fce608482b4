// SPDX-License-Identifier: Apache-2.0
// Programs as text: `<level>.program @name`, then one op per line, blocks indented below their op.
#pragma once

#include <string>

#include "ir/op.h"

namespace nautilus::ir {

std::string print(const Program& program);
std::string print(const Op& op, int indent = 0);
std::string print(const TensorType& type);

}  // namespace nautilus::ir
