// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/inline_conditions.h"

#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;

// Longer ones are computed once.
constexpr size_t kMostNodes = 64;
constexpr size_t kMostWrittenOut = 256;  // with shared nodes counted at each use

// Numbers made of floats are data, not positions: their readers may use each of them many times.
bool is_made_of_floats(Expr e) {
  return e.op() == expr::Op::Cast && expr::is_int(e.dtype()) && expr::is_float(e[0].dtype());
}

bool is_condition(const Let& let) {
  if (expr::is_float(let.dtype) || expr::has_reduce(let.body)) return false;
  if (let.body.tree_size() > kMostWrittenOut) return false;
  size_t nodes = 0;
  bool is_data = false;
  expr::for_each(let.body, [&](Expr e) {
    ++nodes;
    is_data |= is_made_of_floats(e);
  });
  return nodes <= kMostNodes && !is_data;
}

}  // namespace

std::optional<ir::Program> inline_conditions(const ir::Program& program, ir::PassContext& context) {
  const std::unordered_set<ir::Name> kept = output_set(program);
  std::unordered_map<ir::Name, Let> conditions;
  return map_equations(program, [&](const Let& let) -> std::optional<Let> {
    Let out = map_reads(let, context.pool, [&](Expr read) {
      const auto it = conditions.find(read.name());
      return it == conditions.end() ? read : body_at(it->second, read, context.pool);
    });
    if (kept.contains(let.name) || !is_condition(out)) return out;
    conditions.emplace(let.name, std::move(out));
    return std::nullopt;
  });
}

}  // namespace nautilus::spec
