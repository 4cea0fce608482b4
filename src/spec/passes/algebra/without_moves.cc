// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/without_moves.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using MoveOp = expr::Op;

// Whether the value is an element of some tensor, or 0, whichever conditions on places say.
bool is_move(Expr e) {
  if (e.op() == MoveOp::Select)
    return expr::tensors_read(e[0]).empty() && is_move(e[1]) && is_move(e[2]);
  return e.op() == MoveOp::Read || e.op() == MoveOp::FloatConst;
}

// Whether some contraction of the equation has the tensor as operand.
bool is_operand_in(const Let& let, ir::Name tensor, expr::ExprPool& pool) {
  bool found = false;
  expr::for_each(let.body, [&](Expr r) {
    if (r.op() != MoveOp::Reduce || r.reducer() != expr::Reducer::Sum) return;
    const Expr body = r.body().op() == MoveOp::Select ? r.body()[1] : r.body();
    const std::vector<ir::Name> read = expr::tensors_read(body);
    if (std::find(read.begin(), read.end(), tensor) == read.end()) return;
    found |= algebra::is_contraction(algebra::factors(body), result_axes(let, pool));
  });
  return found;
}

}  // namespace

ir::Program without_moves(const ir::Program& program, const std::unordered_set<ir::Name>& equations,
                          expr::ExprPool& pool) {
  const auto handed_over = output_set(program);
  std::map<std::string, Let, std::less<>> moves;
  const auto with_moves = [&](const Let& let) {
    return map_reads(let, pool, [&](Expr read) {
      const auto move = moves.find(read.name().str());
      return move == moves.end() ? read : body_at(move->second, read, pool);
    });
  };
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let || !equations.contains(let->name) || handed_over.contains(let->name) ||
        !is_move(let->body))
      continue;
    if (!is_operand(program, let->name, pool)) moves.emplace(let->name.str(), with_moves(*let));
  }
  if (moves.empty()) return program;
  return map_equations(program, [&](const Let& let) -> std::optional<Let> {
    if (moves.contains(let.name.str())) return std::nullopt;
    return with_moves(let);
  });
}

bool is_operand(const ir::Program& program, ir::Name tensor, expr::ExprPool& pool) {
  return std::any_of(program.body.begin(), program.body.end(), [&](const ir::Op& op) {
    const auto* reader = op.get<Let>();
    return reader && is_operand_in(*reader, tensor, pool);
  });
}

bool is_of_axes(const Let& let, Expr reduction, expr::ExprPool& pool) {
  const auto known = all_axes(let, pool);
  for (Expr v : expr::free_vars(reduction)) {
    const bool is_own = std::any_of(let.axes.begin(), let.axes.end(),
                                    [&](const ir::Axis& a) { return a.name == v.name(); });
    if (known.contains(v) && !is_own) return false;
  }
  return true;
}

}  // namespace nautilus::spec
