// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/inline_terms.h"

#include <algorithm>

#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

// Whether every element of a tensor that is read so belongs to one point of the reduction.
bool is_point(const Let& reader, Expr read, expr::ExprPool& pool) {
  const std::unordered_set<Expr> axes = all_axes(reader, pool);
  const std::unordered_set<Expr> own(read.args().begin(), read.args().end());
  return own.size() == read.args().size() && own == axes;
}

// How tensors are read: by one equation only, a reduction, at its points.
std::unordered_map<ir::Name, const Let*> single_readers(const ir::Program& program,
                                                        expr::ExprPool& pool) {
  std::unordered_map<ir::Name, const Let*> readers;  // null: read in another way, too
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) continue;
    const bool is_reduction = let->body.op() == Op::Reduce;
    expr::for_each(let->body, [&](Expr e) {
      if (e.op() != Op::Read) return;
      const auto [it, is_new] = readers.emplace(e.name(), let);
      if ((!is_new && it->second != let) || !is_reduction || !is_point(*let, e, pool))
        it->second = nullptr;
    });
  }
  return readers;
}

}  // namespace

std::optional<ir::Program> inline_terms(const ir::Program& program, ir::PassContext& context) {
  const std::unordered_set<ir::Name> kept = output_set(program);
  const auto readers = single_readers(program, context.pool);
  std::unordered_map<ir::Name, Let> terms;
  return map_equations(program, [&](const Let& let) -> std::optional<Let> {
    Let out = map_reads(let, context.pool, [&](Expr read) {
      const auto it = terms.find(read.name());
      return it == terms.end() ? read : body_at(it->second, read, context.pool);
    });
    const auto it = readers.find(let.name);
    const bool is_term = it != readers.end() && it->second && !kept.contains(let.name) &&
                         !expr::has_reduce(let.body) && let.dtype == let.body.dtype();
    if (!is_term) return out;
    terms.emplace(let.name, std::move(out));
    return std::nullopt;
  });
}

}  // namespace nautilus::spec
