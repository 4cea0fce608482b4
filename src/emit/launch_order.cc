// SPDX-License-Identifier: Apache-2.0
#include "emit/launch_order.h"

namespace nautilus::emit {

LaunchOrder launch_order(const ir::Program& program, const matile::Kernel& kernel) {
  LaunchOrder order;
  bool is_found = false;
  for (const ir::Op& op : program.body) {
    const auto* launch = op.get<matile::Launch>();
    if (!launch) continue;
    if (launch->kernel == kernel.name || launch->unaligned_fallback == kernel.name)
      is_found = true;
    else
      (is_found ? order.is_followed : order.is_behind) = true;
  }
  return order;
}

}  // namespace nautilus::emit
