// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/without_moves.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/target_of.h"

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

// The same with a little arithmetic, such as a bias.
bool is_cheap(Expr e) {
  switch (e.op()) {
    case MoveOp::Add:
    case MoveOp::Sub:
    case MoveOp::Mul:
    case MoveOp::Max:
    case MoveOp::Min:
      return is_cheap(e[0]) && is_cheap(e[1]);
    case MoveOp::Select:
      return expr::tensors_read(e[0]).empty() && is_cheap(e[1]) && is_cheap(e[2]);
    default:
      return is_move(e) || (e.op() == MoveOp::Var && expr::is_float(e.dtype()));
  }
}

// Whether it is a reduction over a window: of places that are known, and so few that kernels write
// them out.
bool is_window(Expr e, int64_t most_places) {
  if (e.op() != MoveOp::Reduce || expr::has_reduce(e.body())) return false;
  int64_t places = 1;
  for (size_t k = 0; k < e.axis_count(); ++k) {
    const Expr extent = e.extent(k);
    if (extent.op() != MoveOp::IntConst || extent.integer() > most_places) return false;
    places *= std::max<int64_t>(extent.integer(), 1);
  }
  return places <= most_places;
}

// Whether windows of one equation are all that reads the tensor.
bool is_read_by_windows(const ir::Program& program, ir::Name tensor) {
  const int64_t most_places = ir::target_of(program).points.unrolled;
  int readers = 0;
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) continue;
    std::unordered_set<Expr> reads;
    std::unordered_set<Expr> of_windows;
    expr::for_each(let->body, [&](Expr e) {
      if (e.op() == MoveOp::Read && e.name() == tensor) reads.insert(e);
      if (!is_window(e, most_places)) return;
      expr::for_each(e.body(), [&](Expr x) {
        const bool is_moved = x.op() == MoveOp::Read && x.name() == tensor &&
                              expr::depends_on(x, e.axis(e.axis_count() - 1));
        if (is_moved) of_windows.insert(x);
      });
    });
    if (reads.empty()) continue;
    if (reads.size() != of_windows.size()) return false;
    ++readers;
  }
  return readers == 1;
}

// Multiples of n leave quotients and remainders by n: of a window that moves by n, places of
// classes are then those of its turns.
Expr without_multiples(Expr body, expr::ExprPool& pool) {
  return expr::rebuild(pool, body, [&](Expr e) {
    const bool is_divided = (e.op() == MoveOp::FloorDiv || e.op() == MoveOp::Mod) &&
                            e[1].op() == MoveOp::IntConst && e[1].integer() > 1;
    const auto p = is_divided ? expr::Poly::of(e[0]) : std::nullopt;
    if (!p) return e;
    expr::Poly whole;
    expr::Poly rest;
    for (const auto& [monomial, factor] : p->terms()) {
      const bool is_multiple = !monomial.empty() && factor % e[1].integer() == 0;
      const bool is_added =
          is_multiple ? whole.add(monomial, factor / e[1].integer()) : rest.add(monomial, factor);
      if (!is_added) return e;
    }
    if (whole.is_zero()) return e;
    const Expr left = pool.binary(e.op(), expr::to_expr(pool, rest), e[1]);
    return e.op() == MoveOp::Mod ? left
                                 : pool.binary(MoveOp::Add, expr::to_expr(pool, whole), left);
  });
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
        !(is_move(let->body) || (is_cheap(let->body) && is_read_by_windows(program, let->name))))
      continue;
    if (!is_operand(program, let->name, pool)) moves.emplace(let->name.str(), with_moves(*let));
  }
  if (moves.empty()) return program;
  return map_equations(program, [&](const Let& let) -> std::optional<Let> {
    if (moves.contains(let.name.str())) return std::nullopt;
    Let out = with_moves(let);
    if (out.body != let.body) out.body = without_multiples(out.body, pool);
    return out;
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
