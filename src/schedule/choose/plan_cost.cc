// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/plan_cost.h"

#include <algorithm>

#include "expr/walk.h"
#include "schedule/apply/apply.h"
#include "schedule/choose/candidates.h"
#include "target/target.h"

namespace nautilus::schedule {

std::optional<double> plan_cycles(std::vector<Kernel> kernels, const ir::Program& program,
                                  const Target& target, expr::ExprPool& pool) {
  ir::Environment hints;
  std::map<std::string, ir::TensorType, std::less<>> types;
  for (const ir::Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>()) {
      if (!d->hint) return std::nullopt;
      hints.sizes.emplace(d->name.str(), *d->hint);
    }
    if (const auto* b = op.get<scalar::Buffer>()) types.emplace(b->name.str(), b->type);
  }
  double cycles = 0;
  for (const Kernel& k : kernels) {
    double best = 0;
    for (const auto& r : rank_candidates(k, program, target, pool)) {
      if (r.is_kept && (best == 0 || r.at_hints < best)) best = r.at_hints;
    }
    cycles += best;
  }
  const StatementList list = statements_of(program, pool);
  std::set<std::string_view> touched;
  std::set<std::string_view> passed;
  for (int id : remaining(list, kernels)) {
    const Statement& s = list.statements[static_cast<size_t>(id)];
    if (s.is_opaque) continue;
    // Values that such statements pass to each other stay in registers.
    (s.is_reduction() ? touched : passed).insert(s.target.str());
    for (ir::Name n : expr::tensors_read(s.value)) touched.insert(n.str());
    if (s.is_reduction()) cycles += target.costs.next_kernel_cycles;
  }
  for (std::string_view name : touched) {
    const auto type = types.find(name);
    if (type == types.end() || passed.contains(name)) continue;
    double bytes = static_cast<double>(expr::bytes(type->second.dtype));
    for (Expr e : type->second.dims) bytes *= static_cast<double>(ir::evaluate_size(e, hints));
    cycles += bytes / target.costs.memory_bytes_per_cycle;
  }
  return cycles;
}

}  // namespace nautilus::schedule
