// SPDX-License-Identifier: Apache-2.0
#include "emit/kernel/kernel_scope.h"

namespace nautilus::emit {

using expr::Expr;

KernelScope::KernelScope(const ir::Program& of, const matile::Kernel& printed,
                         expr::ExprPool& given_pool)
    : program(of),
      kernel(printed),
      pool(given_pool),
      resources(matile::resources_of(printed, ir::target_of(of))) {}

void KernelScope::begin_role(const matile::RoleInfo& printed) {
  role = &printed;
  registers = RegisterScope{};
  facts = base_facts;
  locals.clear();
  registers.globals = &globals;
  registers.facts = &facts;
  registers.pool = &pool;
  registers.variable = [this](Expr v) { return variable(v); };
  registers.has_coarse_functions =
      ir::allows_coarse_functions(program, matile::output_dtypes(program));
  registers.many_positions = ir::target_of(program).tiles.many_positions;
  registers.chained_terms = ir::target_of(program).tiles.chained_terms;
  registers.chains = kernel.chains.value_or(1);
  registers.divisors = divisors;
  registers.vectors = &vectors;
}

void KernelScope::know(expr::Facts& known, ir::Name name, Expr value) const {
  if (value.dtype() != expr::DType::I64) return;
  const auto poly = expr::Poly::of(value);
  if (poly && known.is_nonnegative(*poly)) known.add_size(pool.index(name));
}

std::string KernelScope::variable(Expr var) const {
  const std::string name = identifier(var.name().str());
  return locals.contains(var.name().str()) ? name : "p." + name;
}

std::string KernelScope::text(Expr e) const {
  ExpressionNames names;
  names.variable = [this](Expr v) { return variable(v); };
  // A number that is the same for all threads that read it.
  names.read = [this](Expr read) {
    const auto global = globals.find(read.name().str());
    NAUT_CHECK(global != globals.end(), "a scalar reads `{}`", read.name().str());
    std::string at;
    for (size_t k = 0; k < read.args().size(); ++k)
      at += (at.empty() ? "" : " + ") + global->second.step(text(read[k]), k);
    return fmt::format("load_{}(p.{}, {})", expr::name(read.dtype()), identifier(read.name().str()),
                       at.empty() ? "0" : at);
  };
  names.facts = &facts;
  return expression(e, names);
}

std::string KernelScope::list(const ir::Exprs& exprs) const {
  std::string joined;
  for (Expr e : exprs) joined += ", " + text(e);
  return joined;
}

std::string KernelScope::group_text() const {
  return role->op->index ? identifier(role->op->index.str()) : "0";
}

std::string KernelScope::per_cluster(std::string_view ctas) const {
  return resources.cluster > 1 ? fmt::format("{} / {}", ctas, resources.cluster)
                               : std::string(ctas);
}

std::string KernelScope::ring_type(const matile::RingInfo& ring) {
  return ring.ctas > 1 ? fmt::format("Ring<{}, {}>", ring.slots(), ring.ctas)
                       : fmt::format("Ring<{}>", ring.slots());
}

std::string KernelScope::slot_address(const matile::RingInfo& ring,
                                      const matile::SlotTileInfo& slot_tile) {
  std::string address = fmt::format("smem + {}", ring.offset + slot_tile.offset);
  if (ring.slots() > 1)
    address += fmt::format(" + {}.slot * {}", identifier(ring.op->name.str()), ring.slot_bytes);
  return address;
}

std::string KernelScope::own_slot_address(const matile::RingInfo& ring,
                                          const matile::SlotTileInfo& slot_tile) const {
  std::string address = slot_address(ring, slot_tile);
  if (ring.copies > 1) address += fmt::format(" + {} * {}", group_text(), ring.copy_bytes());
  return address;
}

}  // namespace nautilus::emit
