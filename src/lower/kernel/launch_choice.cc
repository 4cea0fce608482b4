// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel/launch_choice.h"

#include "matile/ops.h"

namespace nautilus::lower {

ir::Block launch_cheapest(std::vector<std::pair<LoweredKernel, expr::Expr>>& kernels,
                          FreshNames& names, expr::ExprPool& pool) {
  ir::Block lets;
  std::vector<expr::Expr> costs;
  for (const auto& [parts, cost] : kernels) {
    const std::string kernel(parts.kernel.as<matile::Kernel>().name.str());
    const ir::Name name = names.make(kernel + "_cost");
    lets.push_back(ir::make(matile::Let{name, cost}));
    costs.push_back(pool.index(name));
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    expr::Expr is_least;
    for (size_t o = 0; o < kernels.size(); ++o) {
      if (o == k) continue;
      const expr::Expr less = pool.binary(o < k ? expr::Op::Lt : expr::Op::Le, costs[k], costs[o]);
      is_least = is_least ? pool.binary(expr::Op::And, is_least, less) : less;
    }
    auto launch = kernels[k].first.launch.as<matile::Launch>();
    launch.grid = pool.select(is_least, launch.grid, pool.integer(0));
    kernels[k].first.launch = ir::make(std::move(launch));
  }
  return lets;
}

}  // namespace nautilus::lower
