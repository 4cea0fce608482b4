// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_shapes.h"

#include <algorithm>

#include "expr/walk.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using Kind = RowStatement::Kind;
using EK = expr::Op;

// Tensors that are read or written along the row.
std::vector<ir::TensorType> row_tensors(const RowContext& c) {
  std::map<std::string, ir::TensorType> found;
  for (const RowStatement& s : c.group.statements) {
    expr::for_each(s.value, [&](Expr e) {
      if (e.op() != EK::Read || e.args().empty() || e.args().back() != c.group.place) return;
      const auto it = c.buffers.find(std::string(e.name().str()));
      if (it != c.buffers.end()) found.insert(*it);
    });
    if (s.kind == Kind::Element) found.insert(*c.buffers.find(std::string(s.target.str())));
  }
  std::vector<ir::TensorType> out;
  for (const auto& [name, type] : found) out.push_back(type);
  return out;
}

}  // namespace

std::optional<RowReference> row_reference(const RowContext& context) {
  const RowGroup& group = context.group;
  const Expr column = context.pool.index(group.column.name);
  const auto begin = [&](Expr index) {
    return expr::substitute(context.pool, index, {{column, context.pool.integer(0)}});
  };
  std::optional<RowReference> best;
  const auto offer = [&](ir::Name name, std::span<const Expr> indices) {
    const auto it = context.buffers.find(std::string(name.str()));
    if (it == context.buffers.end() || (best && best->at.size() >= indices.size())) return;
    RowReference found{it->second, {}};
    for (const Expr i : indices) found.at.push_back(begin(i));
    const bool is_plain = std::none_of(found.at.begin(), found.at.end(),
                                       [](Expr i) { return !expr::tensors_read(i).empty(); });
    if (is_plain) best = std::move(found);
  };
  for (const RowStatement& s : group.statements) {
    expr::for_each(s.value, [&](Expr e) {
      if (e.op() == EK::Read && !e.args().empty() && e.args().back() == group.place)
        offer(e.name(), e.args());
    });
    if (s.kind != Kind::Element || !context.kept.contains(std::string(s.target.str()))) continue;
    std::vector<Expr> indices;
    for (const ir::Axis& a : group.rows) indices.push_back(context.pool.index(a.name));
    indices.push_back(column);
    offer(s.target, indices);
  }
  return best;
}

bool are_whole_vectors(const RowContext& context, int64_t by) {
  const auto is_whole = [&](Expr n) {
    if (n.op() == EK::IntConst) return n.integer() % by == 0;
    const Expr rest = context.pool.binary(EK::Mod, n, context.pool.integer(by));
    const Expr is_none = context.pool.binary(EK::Eq, rest, context.pool.integer(0));
    return context.facts.prove(is_none) == expr::Truth::True;
  };
  return is_whole(context.columns()) && is_whole(context.length());
}

int64_t most_row_vector(const RowContext& context) {
  const target::Rows& rows = context.choice();
  int64_t width = rows.least_vector;
  for (const ir::TensorType& t : row_tensors(context))
    width = std::max<int64_t>(
        width, std::min<int64_t>(context.group.target->memory.vector_bytes / expr::bytes(t.dtype),
                                 rows.most_vector));
  return width;
}

RowRoom row_room(const RowContext& context, const RowShape& shape) {
  const target::Rows& choice = context.choice();
  const int64_t holders = shape.holders(choice);
  int64_t sum = 0;
  std::set<std::string> own;
  for (const RowStatement& s : context.group.statements) own.emplace(s.target.str());
  const std::vector<Expr> shared = shared_by_rows(context.group, context.pool);
  std::set<std::string> read;
  for (const RowStatement& s : context.group.statements) {
    expr::for_each(s.value, [&](Expr e) {
      if (e.op() != EK::Read || e.args().empty() || e.args().back() != context.group.place) return;
      if (own.contains(std::string(e.name().str()))) return;
      if (!read.emplace(e.name().str()).second) return;
      const bool is_shared = std::find(shared.begin(), shared.end(), e) != shared.end();
      const int64_t held =
          is_shared ? std::min(shape.columns, holders * choice.turn_elements) : shape.columns;
      sum += row_tile_registers(e.dtype(), held, holders);
    });
  }
  return {sum,
          shape.groups > 1 ? choice.alone_registers - choice.spare_registers : choice.registers};
}

int64_t row_tile_registers(DType dtype, int64_t columns, int64_t threads) {
  return columns / threads * (expr::bytes(dtype) == 2 ? 1 : 2) / 2;
}

bool has_elements_only(const RowGroup& group) {
  return std::none_of(group.statements.begin(), group.statements.end(),
                      [](const RowStatement& s) { return s.kind != Kind::Element; });
}

std::vector<Expr> shared_by_rows(const RowGroup& group, expr::ExprPool& pool) {
  const Expr column = pool.index(group.column.name);
  std::set<const expr::Node*> reduced;
  const auto visit = [&](const auto& self, Expr value) -> void {
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read || !reduced.insert(e.node()).second) return;
      for (const RowStatement& s : group.statements) {
        if (s.target == e.name()) self(self, s.value);
      }
    });
  };
  for (const RowStatement& s : group.statements) {
    if (s.kind == Kind::Reduction) visit(visit, s.value);
  }
  std::vector<Expr> out;
  for (const RowStatement& s : group.statements) {
    if (s.kind != Kind::Element) continue;
    expr::for_each(s.value, [&](Expr e) {
      if (e.op() != EK::Read || e.args().size() != 1 || e[0] != column) return;
      if (!group.rows.empty() && !reduced.contains(e.node()) &&
          std::find(out.begin(), out.end(), e) == out.end())
        out.push_back(e);
    });
  }
  return out;
}

}  // namespace nautilus::lower
