// SPDX-License-Identifier: Apache-2.0
#include "choose/gather_choices.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "lower/places/sort_nests.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using ir::Op;

bool is_nest(const Op& op) {
  const auto* loop = op.get<scalar::For>();
  return loop && loop->kind == scalar::LoopKind::Map;
}

bool reads_any(const Op& op, const std::set<std::string>& tensors) {
  bool found = false;
  ir::for_each_op({op}, [&](const Op& inner) {
    ir::for_each_expr(inner, [&](expr::Expr e) {
      for (expr::Name n : expr::tensors_read(e)) found |= tensors.contains(std::string(n.str()));
    });
  });
  return found;
}

// Moves the choices by the count at `at` behind it.
void gather(ir::Block& ops, size_t at, const target::Target& target, expr::ExprPool& pool) {
  const lower::FreshNames names(pool);
  std::vector<lower::MapNest> nests = {lower::map_nest(ops[at])};
  if (!is_nest(ops[at]) || !lower::sort_nests(nests, names, target, pool)) return;
  size_t end = at + 1;
  std::set<std::string> between;  // what is written behind the count
  for (size_t k = end; k < ops.size(); ++k) {
    nests.resize(1);
    if (is_nest(ops[k])) nests.push_back(lower::map_nest(ops[k]));
    const auto order = lower::sort_nests(nests, names, target, pool);
    if (order->count == 2 && !reads_any(ops[k], between)) {
      const auto first = ops.begin() + static_cast<std::ptrdiff_t>(end++);
      const auto moved = ops.begin() + static_cast<std::ptrdiff_t>(k);
      std::rotate(first, moved, moved + 1);
      between.merge(lower::written_by(nests[1]));  // another choice that reads it stays behind it
      continue;
    }
    if (ops[k].is<scalar::Buffer>()) continue;
    between.merge(lower::written_by(lower::map_nest(ops[k])));
  }
}

}  // namespace

std::optional<ir::Program> gather_choices(const ir::Program& program, ir::PassContext& context) {
  ir::Program out = program;
  for (size_t k = 0; k < out.body.size(); ++k) {
    if (is_nest(out.body[k])) gather(out.body, k, ir::target_of(program), context.pool);
  }
  return out;
}

}  // namespace nautilus::choose
