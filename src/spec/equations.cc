// SPDX-License-Identifier: Apache-2.0
#include "spec/equations.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/flat_name.h"

namespace nautilus::spec {

using expr::Expr;
using expr::Op;

std::vector<Expr> result_axes(const Let& let, expr::ExprPool& pool) {
  std::vector<Expr> axes;
  for (const ir::Axis& a : let.axes) axes.push_back(pool.index(a.name));
  return axes;
}

std::unordered_set<Expr> all_axes(const Let& let, expr::ExprPool& pool) {
  std::unordered_set<Expr> axes;
  for (const ir::Axis& a : let.axes) axes.insert(pool.index(a.name));
  expr::for_each(let.body, [&](Expr e) {
    if (e.op() != Op::Reduce) return;
    for (size_t k = 0; k < e.axis_count(); ++k) axes.insert(e.axis(k));
  });
  return axes;
}

Expr element(const Let& let, expr::ExprPool& pool) {
  return pool.read(let.name, let.dtype, result_axes(let, pool));
}

ir::Axes in_order_of_memory(Expr value, ir::Axes axes, expr::ExprPool& pool) {
  ir::Axes ordered;
  expr::for_each(value, [&](Expr e) {
    if (e.op() != expr::Op::Read || ordered.size() == axes.size()) return;
    ordered.clear();
    for (Expr index : e.args()) {
      for (const ir::Axis& a : axes) {
        const bool is_there = std::any_of(ordered.begin(), ordered.end(),
                                          [&](const ir::Axis& o) { return o.name == a.name; });
        if (!is_there && expr::depends_on(index, pool.index(a.name))) ordered.push_back(a);
      }
    }
  });
  return ordered.size() == axes.size() ? ordered : axes;
}

Expr body_at(const Let& let, Expr read, expr::ExprPool& pool) {
  expr::Substitution at;
  for (size_t k = 0; k < let.axes.size(); ++k) at.emplace(pool.index(let.axes[k].name), read[k]);
  return expr::substitute(pool, let.body, at);
}

bool is_instance(Expr pattern, Expr e, std::unordered_map<Expr, Expr>& axes) {
  if (const auto it = axes.find(pattern); it != axes.end()) {
    if (!it->second) it->second = e;
    return it->second == e;
  }
  if (pattern.op() != e.op() || pattern.dtype() != e.dtype()) return false;
  if (pattern.args().empty() || pattern.op() == Op::Reduce) return pattern == e;
  if (pattern.op() == Op::Read && pattern.name() != e.name()) return false;
  if (pattern.args().size() != e.args().size()) return false;
  for (size_t k = 0; k < pattern.args().size(); ++k) {
    if (!is_instance(pattern[k], e[k], axes)) return false;
  }
  return true;
}

std::unordered_set<ir::Name> output_set(const ir::Program& program) {
  const std::vector<ir::Name> names = outputs(program);
  return {names.begin(), names.end()};
}

const Let* find_equation(const ir::Program& program, ir::Name name) {
  for (const ir::Op& op : program.body) {
    if (const auto* let = op.get<Let>(); let && let->name == name) return let;
  }
  return nullptr;
}

ir::Program without_copy(const ir::Program& program, ir::Name name, expr::ExprPool& pool) {
  const Let* copy = find_equation(program, name);
  if (!copy || copy->body.op() != Op::Read || copy->body.dtype() != copy->dtype) return program;
  const ir::TensorType type = tensor_types(program).at(std::string(copy->body.name().str()));
  const auto indices = copy->body.args();
  bool is_whole = indices.size() == copy->axes.size();
  for (size_t k = 0; is_whole && k < indices.size(); ++k)
    is_whole = indices[k] == pool.index(copy->axes[k].name) && copy->axes[k].extent == type.dims[k];
  if (!is_whole || output_set(program).contains(name)) return program;
  return map_equations(program, [&](const Let& let) -> std::optional<Let> {
    if (let.name == name) return std::nullopt;
    return map_reads(let, pool, [&](Expr read) {
      return read.name() == name ? body_at(*copy, read, pool) : read;
    });
  });
}

TensorNames::TensorNames(const ir::Program& program, expr::ExprPool& pool) : pool_(pool) {
  for (const auto& [name, type] : tensor_types(program)) taken_.insert(ir::flat_name(name));
}

ir::Name TensorNames::fresh(std::string_view wish) {
  std::string name(wish);
  for (int n = 2; !taken_.insert(ir::flat_name(name)).second; ++n)
    name = fmt::format("{}_{}", wish, n);
  return pool_.name(name);
}

}  // namespace nautilus::spec
