// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/padded_read.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Poly;
using PadOp = expr::Op;

// The least and the greatest value of an index over all places of the axes.
struct Range {
  Expr least;
  Expr greatest;
};

std::optional<Range> range_of(Expr index, const ir::Axes& around, expr::ExprPool& pool) {
  auto rest = Poly::of(index);
  Poly below;
  Poly above;
  for (const ir::Axis& a : around) {
    const auto parts = rest ? rest->split(pool.index(a.name)) : std::nullopt;
    if (!parts) return std::nullopt;
    rest = parts->second;
    if (parts->first.is_zero()) continue;
    const auto factor = parts->first.constant();
    const auto last = Poly::of(pool.binary(PadOp::Sub, a.extent, pool.integer(1)));
    if (!factor || !last) return std::nullopt;
    Poly& side = *factor < 0 ? below : above;
    const auto sum = expr::add(side, *last, *factor);
    if (!sum) return std::nullopt;
    side = *sum;
  }
  if (!rest) return std::nullopt;
  for (Expr atom : rest->atoms()) {
    for (const ir::Axis& a : around) {
      if (expr::depends_on(atom, pool.index(a.name))) return std::nullopt;
    }
  }
  const auto least = expr::add(*rest, below);
  const auto greatest = expr::add(*rest, above);
  if (!least || !greatest) return std::nullopt;
  return Range{expr::to_expr(pool, *least), expr::to_expr(pool, *greatest)};
}

}  // namespace

std::optional<PaddedRead> padded_read(Expr condition, Expr read, const ir::TensorType& type,
                                      const ir::Axes& around, const expr::Facts& facts,
                                      expr::ExprPool& pool) {
  const auto is_true = [](const expr::Facts& known, Expr e) {
    return known.prove(e) == expr::Truth::True;
  };
  const auto binary = [&](PadOp op, Expr a, Expr b) { return pool.binary(op, a, b); };
  expr::Facts inside = facts;
  for (const ir::Axis& a : around) inside.add_axis(pool.index(a.name), a.extent);
  const expr::Facts anywhere = inside;
  const Expr zero = pool.integer(0);
  for (size_t k = 0; k < read.args().size(); ++k) {
    if (read[k].dtype() != expr::DType::I64) return std::nullopt;  // data say where it is
    inside.assume(binary(PadOp::Ge, read[k], zero));
    inside.assume(binary(PadOp::Lt, read[k], type.dims[k]));
  }
  if (!is_true(inside, condition)) return std::nullopt;
  PaddedRead out;
  std::vector<Expr> from;
  Expr exists;
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr index = read[k];
    const Expr dim = type.dims[k];
    const bool is_inside = is_true(anywhere, binary(PadOp::Ge, index, zero)) &&
                           is_true(anywhere, binary(PadOp::Lt, index, dim));
    const bool is_used = std::any_of(out.axes.begin(), out.axes.end(), [&](const ir::Axis& a) {
      return index.op() == PadOp::Var && a.name == index.name();
    });
    const Expr place =
        index.op() == PadOp::Var && !is_used ? index : pool.index(fmt::format("x{}", k));
    if (is_inside) {
      out.axes.push_back({place.name(), dim});
      out.at.push_back(index);
      from.push_back(place);
      continue;
    }
    const auto range = range_of(index, around, pool);
    if (!range) return std::nullopt;
    const Expr extent = expr::canonical_index(
        pool,
        binary(PadOp::Add, binary(PadOp::Sub, range->greatest, range->least), pool.integer(1)));
    if (!is_true(facts, binary(PadOp::Ge, extent, zero))) return std::nullopt;
    out.axes.push_back({place.name(), extent});
    out.at.push_back(expr::canonical_index(pool, binary(PadOp::Sub, index, range->least)));
    from.push_back(expr::canonical_index(pool, binary(PadOp::Add, place, range->least)));
    for (Expr test : {binary(PadOp::Ge, from.back(), zero), binary(PadOp::Lt, from.back(), dim)})
      exists = exists ? binary(PadOp::And, exists, test) : test;
  }
  const Expr element = pool.read(read.name(), read.dtype(), from);
  out.value = exists ? pool.select(exists, element, pool.floating(0, read.dtype())) : element;
  return out;
}

}  // namespace nautilus::spec
