// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/merge_equal.h"

#include <fmt/format.h>

#include <set>

#include "expr/walk.h"
#include "spec/ops.h"

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

Expr rename_reads(Expr body, const std::unordered_map<ir::Name, ir::Name>& renamed,
                  expr::ExprPool& pool) {
  if (renamed.empty()) return body;
  return expr::rebuild(pool, body, [&](Expr e) {
    if (e.op() != Op::Read) return e;
    const auto it = renamed.find(e.name());
    return it == renamed.end() ? e : pool.read(it->second, e.dtype(), e.args());
  });
}

}  // namespace

std::optional<ir::Program> merge_equal(const ir::Program& program, ir::PassContext& context) {
  std::set<std::string_view> kept_always;
  for (ir::Name n : outputs(program)) kept_always.insert(n.str());
  std::unordered_map<ir::Name, ir::Name> renamed;
  std::vector<std::pair<Expr, Let>> seen;
  ir::Program out{program.level, program.name, {}};
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) {
      out.body.push_back(op);
      continue;
    }
    Let copy = *let;
    copy.body = rename_reads(copy.body, renamed, context.pool);
    const Expr canonical = canonical_body(copy, context.pool);
    bool is_merged = false;
    for (const auto& [body, first] : seen) {
      if (body != canonical || first.type() != copy.type() || kept_always.contains(copy.name.str()))
        continue;
      renamed.emplace(copy.name, first.name);
      is_merged = true;
      break;
    }
    if (is_merged) continue;
    seen.emplace_back(canonical, copy);
    out.body.push_back(ir::make(std::move(copy), op.span()));
  }
  return out;
}

}  // namespace nautilus::spec
