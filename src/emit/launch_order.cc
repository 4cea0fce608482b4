// SPDX-License-Identifier: Apache-2.0
#include "emit/launch_order.h"

#include "estimate/shared_memory.h"
#include "expr/walk.h"

namespace nautilus::emit {

namespace {

ir::Name machine_of(const ir::Program& program) {
  for (const ir::Op& op : program.body) {
    if (const auto* m = op.get<matile::Machine>()) return m->name;
  }
  return {};
}

bool begins_early(ir::Name kernel, const ir::Program& program) {
  for (const ir::Op& op : program.body) {
    const auto* k = op.get<matile::Kernel>();
    if (k && k->name == kernel) return k->begins == matile::Begins::Early;
  }
  return false;
}

}  // namespace

LaunchOrder launch_order(const ir::Program& program, const matile::Kernel& kernel) {
  LaunchOrder order;
  order.is_early = kernel.begins == matile::Begins::Early;
  const ir::Name machine = machine_of(program);
  bool is_found = false;
  for (const ir::Op& op : program.body) {
    const auto* launch = op.get<matile::Launch>();
    if (!launch) continue;
    if (launch->kernel != kernel.name && launch->unaligned_fallback != kernel.name) {
      order.is_followed |= is_found && begins_early(launch->kernel, program);
      continue;
    }
    is_found = true;
    expr::for_each(launch->grid, [&](expr::Expr e) {
      order.is_by_multiprocessors |= e.op() == expr::Op::Var && e.name() == machine;
    });
  }
  return order;
}

int asked_shared_bytes(const LaunchOrder& order, const matile::Resources& resources) {
  if (!order.is_early || !order.is_by_multiprocessors) return resources.shared_bytes;
  return static_cast<int>(estimate::bytes_that_keep_apart(
      resources.shared_bytes, resources.resident, resources.target->limits));
}

}  // namespace nautilus::emit
