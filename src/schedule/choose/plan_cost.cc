// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/plan_cost.h"

#include <algorithm>

#include "expr/walk.h"
#include "schedule/apply/apply.h"
#include "schedule/choose/candidates.h"
#include "schedule/choose/part_sizes.h"
#include "target/target.h"

namespace nautilus::schedule {

namespace {

// Sizes of the program's hints; nothing if a dim has none.
std::optional<ir::Environment> all_hints(const ir::Program& program) {
  ir::Environment out;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (!d) continue;
    if (!d->hint) return std::nullopt;
    out.sizes.emplace(d->name.str(), *d->hint);
  }
  return out;
}

// Of statements that no tile kernel has.
double other_cycles(std::vector<Kernel> kernels, const ir::Program& program,
                    const ir::Environment& hints, const Target& target, expr::ExprPool& pool) {
  std::map<std::string, ir::TensorType, std::less<>> types;
  for (const ir::Op& op : program.body) {
    if (const auto* b = op.get<scalar::Buffer>()) types.emplace(b->name.str(), b->type);
  }
  double cycles = 0;
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

// The least of a kernel's alternatives. In parts, if it has them.
double cycles_of_own_sizes(const Kernel& kernel, const ir::Program& program, ir::Environment hints,
                           const Target& target, expr::ExprPool& pool) {
  std::vector<double> all;
  if (kernel.split.is_on()) {
    if (const auto time =
            time_in_parts({kernel, kernel.split, program, target, pool}, kernel.sizes))
      all.push_back(time->cycles + target.costs.launch_cycles);
  }
  std::vector<TileConfig> whole = kernel.others;
  if (all.empty()) whole.push_back(kernel.sizes);
  const algebra::Signs signs(program);
  add_scalars(program, hints);
  for (const TileConfig& sizes : whole) {
    Names names;
    const BuiltKernel built =
        build_whole_kernel({kernel.fusion, program, signs, pool}, sizes, kernel.stored, names);
    const NestCost cost = with_crowding(cost_of(built, built.wholes[0], program, target, pool),
                                        kernel.fusion, sizes, target);
    const Expr cycles = cycles_of(cost, target, pool);
    all.push_back(std::max(1.0, static_cast<double>(ir::evaluate(cycles, hints).i)) +
                  target.costs.launch_cycles);
  }
  return *std::min_element(all.begin(), all.end());
}

}  // namespace

std::optional<double> plan_cycles(std::vector<Kernel> kernels, const ir::Program& program,
                                  const Target& target, expr::ExprPool& pool) {
  const auto hints = all_hints(program);
  if (!hints) return std::nullopt;
  double cycles = 0;
  for (const Kernel& k : kernels) {
    double best = 0;
    for (const auto& r : rank_candidates(k, program, target, pool)) {
      if (r.is_kept && (best == 0 || r.at_hints < best)) best = r.at_hints;
    }
    cycles += best;
  }
  return cycles + other_cycles(kernels, program, *hints, target, pool);
}

std::optional<double> own_cycles(std::vector<Kernel> kernels, const ir::Program& program,
                                 const Target& target, expr::ExprPool& pool) {
  const auto hints = all_hints(program);
  if (!hints) return std::nullopt;
  double cycles = 0;
  for (const Kernel& k : kernels) cycles += cycles_of_own_sizes(k, program, *hints, target, pool);
  return cycles + other_cycles(kernels, program, *hints, target, pool);
}

}  // namespace nautilus::schedule
