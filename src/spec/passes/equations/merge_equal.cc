// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/merge_equal.h"

#include <fmt/format.h>

#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

// The body with axes named by position; the blank keeps them apart from names of the text.
Expr canonical_body(const Let& let, expr::ExprPool& pool) {
  expr::Substitution map;
  for (size_t k = 0; k < let.axes.size(); ++k) {
    map.emplace(pool.index(let.axes[k].name), pool.index(fmt::format("axis {}", k)));
  }
  size_t bound = 0;
  expr::for_each(let.body, [&](Expr e) {
    if (e.op() != Op::Reduce) return;
    for (size_t k = 0; k < e.axis_count(); ++k) {
      if (map.emplace(e.axis(k), pool.index(fmt::format("bound {}", bound))).second) ++bound;
    }
  });
  return expr::substitute(pool, let.body, map);
}

}  // namespace

std::optional<ir::Program> merge_equal(const ir::Program& program, ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  const std::unordered_set<ir::Name> kept = output_set(program);
  std::unordered_map<ir::Name, ir::Name> renamed;
  std::vector<std::pair<Expr, Let>> seen;
  return map_equations(program, [&](const Let& let) -> std::optional<Let> {
    Let out = map_reads(let, pool, [&](Expr read) {
      const auto it = renamed.find(read.name());
      return it == renamed.end() ? read : pool.read(it->second, read.dtype(), read.args());
    });
    const Expr canonical = canonical_body(out, pool);
    for (const auto& [body, first] : seen) {
      if (body != canonical || first.type() != out.type() || kept.contains(out.name)) continue;
      renamed.emplace(out.name, first.name);
      return std::nullopt;
    }
    seen.emplace_back(canonical, out);
    return out;
  });
}

}  // namespace nautilus::spec
