// SPDX-License-Identifier: Apache-2.0
#include "emit/put_pairs.h"

#include "emit/expression.h"
#include "emit/vector.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::Expr;

// The axis along which registers 2k and 2k + 1 are neighbours; -1 if there is none.
int axis_of_pairs(const layout::Layout& layout) {
  int axis = -1;
  if (layout.registers() % 2 != 0) return -1;
  for (int reg = 0; reg < layout.registers(); reg += 2) {
    const auto first = layout.coordinates_of({0, 0, 0, reg});
    const auto second = layout.coordinates_of({0, 0, 0, reg + 1});
    for (size_t k = 0; k < first.size(); ++k) {
      if (first[k] == second[k]) continue;
      const bool is_next = second[k] == first[k] + 1 && (axis < 0 || axis == static_cast<int>(k));
      if (!is_next) return -1;
      axis = static_cast<int>(k);
    }
  }
  return axis;
}

// Whether neighbours along the axis are neighbours of the tensor's last dimension.
bool runs_along_memory(std::span<const Expr> indices, Expr axis) {
  if (indices.empty()) return false;
  for (Expr index : indices.subspan(0, indices.size() - 1)) {
    if (expr::depends_on(index, axis)) return false;
  }
  const auto last = expr::Poly::of(indices.back());
  const auto parts = last ? last->split(axis) : std::nullopt;
  return parts && parts->first.constant() == 1;
}

}  // namespace

bool emit_put_pairs(const matile::Put& op, const matile::Domain& domain, const RegisterScope& scope,
                    Writer& out) {
  const GlobalTensor& global = scope.globals->find(op.target.str())->second;
  const expr::DType dtype = global.type.dtype;
  const int axis = domain.axes.size() == 2 ? axis_of_pairs(domain.layout) : -1;
  const bool has_pairs = expr::has_vectors(dtype) || dtype == expr::DType::I32;
  if (axis < 0 || !has_pairs || !one_of_copies(domain.layout).empty() ||
      !runs_along_memory(op.indices, scope.pool->index(domain.axes[static_cast<size_t>(axis)])))
    return false;
  const std::string name = identifier(op.target.str());
  const int registers = domain.layout.registers();
  out.open("{{  // {}", op.target.str());
  const ElementPrinter text = element_printer(domain, scope, out);
  const PutValues values(without_cast(op.value, dtype), domain, scope, text, out);
  std::string condition;
  if (op.condition) {
    text.prepare(op.condition);
    condition = text.at(op.condition, "reg");
  }
  out.line("bool is_whole = {} == 1 && is_pair(p.{}, {});", global.strides.back(), name,
           text.offset(op.target.str(), op.indices, "0"));
  if (op.condition)
    out.line("UNROLL for (int reg = 0; reg < {}; ++reg) is_whole = is_whole && ({});", registers,
             condition);
  out.open("if (is_whole) {{");
  const auto rows = std::span(op.indices).subspan(0, op.indices.size() - 1);
  const std::string at = fmt::format("{} + {}", text.offset(op.target.str(), rows, "(2 * pair)"),
                                     text.index(op.indices.back(), "(2 * pair)"));
  out.line("UNROLL for (int pair = 0; pair < {}; ++pair)", registers / 2);
  out.line("  store_pair_{}(p.{}, {}, {}, {});", expr::name(dtype), name, at,
           values.at("(2 * pair)"), values.at("(2 * pair + 1)"));
  out.close();
  out.open("else {{");
  out.line("UNROLL for (int reg = 0; reg < {}; ++reg)", registers);
  out.line("  {}store_{}(p.{}, {}, {});",
           condition.empty() ? "" : fmt::format("if ({}) ", condition), expr::name(dtype), name,
           text.offset(op.target.str(), op.indices, "reg"), values.at("reg"));
  out.close();
  out.close();
  return true;
}

}  // namespace nautilus::emit
