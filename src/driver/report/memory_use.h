// SPDX-License-Identifier: Apache-2.0
// Which tensors a kernel reads from memory and writes to it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "matile/ops.h"

namespace nautilus::driver {

struct MemoryUse {
  // Tensors that are read, with the number of loops that read them: a row that does not fit into
  // registers is read once for each.
  std::map<std::string, int> reads;
  std::set<std::string> writes;
  bool has_products = false;  // on the matrix unit
};

// `program` has the kernel, its tensors and their maps.
MemoryUse memory_use(const matile::Kernel& kernel, const ir::Program& program);

}  // namespace nautilus::driver
