// SPDX-License-Identifier: Apache-2.0
#include "driver/check/kernel_check.h"

#include <fmt/format.h>

#include <set>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/run/run.h"
#include "expr/walk.h"
#include "matile/ops.h"

namespace nautilus::driver {

namespace {

// The scalars of a plan by which launches are chosen.
std::set<std::string> costs_of(const ir::Program& kernels) {
  std::set<std::string> out;
  for (const ir::Op& op : kernels.body) {
    const auto* launch = op.get<matile::Launch>();
    if (!launch || launch->grid.op() != expr::Op::Select) continue;
    expr::for_each(launch->grid[0], [&](expr::Expr e) {
      const bool is_order = e.op() == expr::Op::Lt || e.op() == expr::Op::Le;
      if (!is_order || e[0].op() != expr::Op::Var || e[1].op() != expr::Op::Var) return;
      out.emplace(e[0].name().str());
      out.emplace(e[1].name().str());
    });
  }
  return out;
}

// The plan with the kernel of this cost as the cheapest.
ir::Program with_cheapest(const ir::Program& kernels, const std::set<std::string>& costs,
                          const std::string& cheapest, expr::ExprPool& pool) {
  ir::Program out = kernels;
  for (ir::Op& op : out.body) {
    const auto* let = op.get<matile::Let>();
    if (!let || !costs.contains(std::string(let->name.str()))) continue;
    op = ir::make(matile::Let{let->name, pool.integer(let->name.str() == cheapest ? 0 : 1)});
  }
  return out;
}

std::optional<ir::Program> lower_edited(const ir::Program& program, const ScheduleEdit& edit,
                                        Unit& unit, std::string* error) {
  const auto text = edited_schedule(program, edit, unit);
  return text ? lower_with_schedule(program, *text, unit, error) : std::nullopt;
}

std::optional<Outputs> run_plan(const ir::Program& plan, const ir::Environment& env, RunsOn on,
                                const RunRequest& request, Unit& unit, std::string* error) {
  const ir::Environment own = environment_of(plan, env);
  if (on == RunsOn::Device) return run_on_device(plan, own, {}, unit.pool, error);
  EmulateOptions options;
  options.seed = request.seed;
  options.idle_limit = request.idle_limit;
  return run_emulated(plan, own, options, unit.pool, error);
}

}  // namespace

std::optional<std::string> check_kernels(const ir::Program& program, const RunRequest& request,
                                         Unit& unit, const KernelCheck& check) {
  const auto env = prepare(program, request, unit);
  if (!env) return std::nullopt;
  const auto want = oracle_results(program, *env, request, unit);
  if (!want) return std::nullopt;
  std::string error;
  const auto kernels = check.edit.is_on() ? lower_edited(program, check.edit, unit, &error)
                                          : lower_to_kernels(program, unit);
  if (!error.empty()) return error;
  if (!kernels) return std::nullopt;
  std::vector<ir::Program> plans = {*kernels};
  if (check.every) {
    const auto costs = costs_of(*kernels);
    if (!costs.empty()) plans.clear();
    for (const std::string& cost : costs)
      plans.push_back(with_cheapest(*kernels, costs, cost, unit.pool));
  }
  for (size_t k = 0; k < plans.size(); ++k) {
    const auto got = run_plan(plans[k], *env, check.on, request, unit, &error);
    if (!got) return fmt::format("plan {}: {}", k, error);
    for (const auto& [name, result] : *want) {
      const auto it = got->find(name);
      if (it == got->end()) continue;
      const std::string why = objection(it->second, result, program, request);
      if (!why.empty()) return fmt::format("`{}`: in kernels, plan {}, {}", name, k, why);
    }
  }
  return "";
}

}  // namespace nautilus::driver
