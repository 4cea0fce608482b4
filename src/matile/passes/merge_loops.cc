// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/merge_loops.h"

#include <algorithm>
#include <unordered_set>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/ops.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;

bool only_assigns(const Loop& loop) {
  return std::all_of(loop.body.begin(), loop.body.end(),
                     [](const Op& op) { return op.is<Assign>(); });
}

bool needs(const Op& op, const std::unordered_set<ir::Name>& names) {
  bool found = false;
  ir::for_each_expr(op, [&](Expr e) {
    for (Expr v : expr::free_vars(e)) found |= names.contains(v.name());
  });
  return found;
}

std::unordered_set<ir::Name> assigned(const Loop& loop) {
  std::unordered_set<ir::Name> names;
  for (const Op& op : loop.body) names.insert(op.as<Assign>().name);
  return names;
}

// The loop of `out` that `next` can join, or its end. All behind it can stand in front of it.
size_t place_for(const Loop& next, const ir::Block& out) {
  std::vector<const Op*> between;
  for (size_t k = out.size(); k-- > 0;) {
    const auto* loop = out[k].get<Loop>();
    if (!loop) {
      if (!out[k].is<Value>() && !out[k].is<Let>()) break;
      between.push_back(&out[k]);
      continue;
    }
    if (loop->from != next.from || loop->to != next.to || loop->direction != next.direction) break;
    if (!only_assigns(*loop)) break;
    const auto names = assigned(*loop);
    bool is_apart = std::none_of(between.begin(), between.end(),
                                 [&](const Op* op) { return needs(*op, names); });
    for (const Op& op : next.body) is_apart &= !needs(op, names);
    return is_apart ? k : out.size();
  }
  return out.size();
}

}  // namespace

ir::Block merged_loops(const ir::Block& block, expr::ExprPool& pool) {
  ir::Block out;
  for (const Op& op : block) {
    const auto* next = op.get<Loop>();
    const size_t at = next && only_assigns(*next) ? place_for(*next, out) : out.size();
    if (at == out.size()) {
      out.push_back(op);
      continue;
    }
    Loop merged = out[at].as<Loop>();
    const expr::Substitution own{{pool.index(next->var), pool.index(merged.var)}};
    for (const Op& a : next->body)
      merged.body.push_back(
          ir::map_exprs(a, [&](Expr e) { return expr::substitute(pool, e, own); }));
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(at));
    out.push_back(ir::make(std::move(merged)));
  }
  return out;
}

std::optional<ir::Program> merge_loops(const ir::Program& program, ir::PassContext& context) {
  ir::Program out = program;
  for (Op& op : out.body) {
    const auto* kernel = op.get<Kernel>();
    const auto* points = kernel && !kernel->body.empty() ? kernel->body[0].get<Points>() : nullptr;
    if (!points) continue;
    Points merged = *points;
    merged.body = merged_loops(points->body, context.pool);
    Kernel changed = *kernel;
    changed.body = {ir::make(std::move(merged))};
    op = ir::make(std::move(changed));
  }
  return out;
}

}  // namespace nautilus::matile
