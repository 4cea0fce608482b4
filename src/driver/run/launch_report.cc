// SPDX-License-Identifier: Apache-2.0
#include "driver/run/launch_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "diag/diagnostic.h"
#include "diag/render.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "matile/ops.h"
#include "matile/resources.h"

namespace nautilus::driver {
namespace {

using EK = expr::Op;

// The condition under which a grid is not empty: that of `where(condition, grid, 0)`.
expr::Expr condition_of(expr::Expr grid) {
  if (grid.op() != EK::Select) return {};
  return grid[1].is_int(0) || grid[2].is_int(0) ? grid[0] : expr::Expr();
}

std::vector<std::pair<std::string, int64_t>> reasons_of(expr::Expr condition,
                                                        const ir::Environment& env) {
  std::vector<std::pair<std::string, int64_t>> out;
  for (expr::Expr v : expr::free_vars(condition)) {
    const auto size = env.sizes.find(v.name().str());
    if (size != env.sizes.end()) out.emplace_back(v.name().str(), size->second);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string text_of(const std::vector<std::pair<std::string, int64_t>>& reasons) {
  std::string out;
  for (const auto& [name, value] : reasons)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, value);
  return out;
}

}  // namespace

ir::Environment with_plan_numbers(const ir::Program& kernels, ir::Environment env,
                                  int multiprocessors) {
  for (const ir::Op& op : kernels.body) {
    if (const auto* m = op.get<ir::Machine>()) env.sizes.emplace(m->name.str(), multiprocessors);
    const auto* let = op.get<matile::Let>();
    if (!let) continue;
    const expr::Value value = ir::evaluate(let->value, env);
    if (let->value.dtype() == expr::DType::I64) {
      env.sizes.insert_or_assign(std::string(let->name.str()), value.i);
    } else {
      env.scalars.insert_or_assign(std::string(let->name.str()), value);
    }
  }
  return env;
}

std::vector<PlannedLaunch> planned_launches(const ir::Program& kernels, ir::Environment env,
                                            int multiprocessors) {
  std::vector<PlannedLaunch> out;
  std::map<std::string, int> threads;
  env = with_plan_numbers(kernels, std::move(env), multiprocessors);
  for (const ir::Op& op : kernels.body) {
    if (const auto* k = op.get<matile::Kernel>())
      threads.emplace(k->name.str(), matile::resources_of(*k, ir::target_of(kernels)).threads);
    const auto* launch = op.get<matile::Launch>();
    if (!launch) continue;
    const std::string name(launch->kernel.str());
    const expr::Expr condition = condition_of(launch->grid);
    out.push_back(
        {name, ir::evaluate(launch->grid, env).i, threads[name],
         condition ? reasons_of(condition, env) : std::vector<std::pair<std::string, int64_t>>()});
  }
  return out;
}

std::string launch_report(const std::vector<PlannedLaunch>& launches) {
  std::string out;
  std::vector<std::string> others;
  for (const PlannedLaunch& l : launches) {
    if (l.grid == 0) {
      others.push_back(l.kernel);
      continue;
    }
    out += fmt::format("  kernel {}: {}{}{}\n", l.kernel,
                       diag::counted(static_cast<size_t>(l.grid), "CTA", "CTAs"),
                       l.threads > 0 ? fmt::format(" of {} threads", l.threads) : "",
                       l.reasons.empty() ? "" : fmt::format(", for {}", text_of(l.reasons)));
  }
  if (!others.empty()) out += fmt::format("  not launched: {}\n", fmt::join(others, ", "));
  return out;
}

}  // namespace nautilus::driver
