// SPDX-License-Identifier: Apache-2.0
#include "choose/points/point_lines.h"

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using expr::Expr;
using EK = expr::Op;

// Neighbours along the axis read the same element: the quotient by a constant.
bool is_same_for_neighbours(Expr index, Expr axis) {
  if (!expr::depends_on(index, axis)) return true;
  return index.op() == EK::FloorDiv && index[1].op() == EK::IntConst && index[1].integer() > 1;
}

// Elements of a vector for the nest's reads and writes along its last axis; 0 if vectors are not
// possible.
int64_t vector_of(const lower::MapNest& nest, const std::map<std::string, ir::TensorType>& buffers,
                  const target::Target& target, expr::ExprPool& pool) {
  const Expr last = pool.index(nest.axes.back().name);
  int64_t narrowest = 0;
  bool ok = true;
  const auto add = [&](expr::DType dtype) {
    const int64_t bytes = expr::bytes(dtype);
    narrowest = narrowest == 0 ? bytes : std::min(narrowest, bytes);
  };
  ir::for_each_op(nest.body, [&](const ir::Op& op) {
    ok &= !op.is<scalar::If>() && !op.is<scalar::For>();
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() != EK::Read || !expr::depends_on(e, last)) return;
        for (size_t k = 0; k + 1 < e.args().size(); ++k) ok &= !expr::depends_on(e[k], last);
        const bool is_line = expr::counts_along(e.args().back(), last);
        ok &= is_line || is_same_for_neighbours(e.args().back(), last);
        if (is_line && expr::has_vectors(e.dtype())) add(e.dtype());
      });
    });
  });
  for (const std::string& w : lower::written_by(nest)) {
    const auto type = buffers.find(w);
    if (type != buffers.end() && expr::has_vectors(type->second.dtype)) add(type->second.dtype);
  }
  return ok && narrowest > 0 ? target.memory.vector_bytes / narrowest : 0;
}

// The one axis that an index counts along, from whatever place on; null if it is not that simple.
Expr runs_along(Expr index, const ir::Axes& axes, expr::ExprPool& pool) {
  Expr out;
  for (const ir::Axis& a : axes) {
    const Expr axis = pool.index(a.name);
    if (!expr::depends_on(index, axis)) continue;
    const auto p = expr::Poly::of(index);
    const auto parts = p ? p->split(axis) : std::nullopt;
    if (out || !parts || parts->first.constant() != 1) return {};
    out = axis;
  }
  return out;
}

// The contiguous axis of the nest's reads where that is not its last axis; null if there is none or
// several, or if vectors are not possible. `bytes`: of an element.
Expr transposed_axis(const lower::MapNest& nest, expr::ExprPool& pool, int64_t& bytes) {
  const Expr last = pool.index(nest.axes.back().name);
  Expr axis;
  bool ok = true;
  const auto is_far = [&](Expr read) {
    return std::any_of(read.args().begin(), read.args().end() - 1,
                       [&](Expr index) { return expr::depends_on(index, last); });
  };
  ir::for_each_op(nest.body, [&](const ir::Op& op) {
    const auto* store = op.get<scalar::Store>();
    ok &= store && store->indices.back() == last;
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() != EK::Read || e.args().size() < 2 || !is_far(e)) return;
        const Expr along = runs_along(e.args().back(), nest.axes, pool);
        if (!along) {
          ok = false;
          return;
        }
        const auto uses = std::count_if(e.args().begin(), e.args().end(),
                                        [&](Expr index) { return expr::depends_on(index, along); });
        const bool is_plain =
            along != last && uses == 1 && expr::has_vectors(e.dtype()) && (!axis || axis == along);
        ok &= is_plain;
        if (!is_plain) return;
        axis = along;
        bytes = expr::bytes(e.dtype());
      });
    });
  });
  return ok ? axis : Expr();
}

}  // namespace

bool has_many(const ir::Axes& axes, const target::Target& target) {
  int64_t points = 1;
  for (const ir::Axis& a : axes) {
    const int64_t n = a.extent.op() == EK::IntConst ? a.extent.integer() : target.points.many;
    points = std::min(points * std::min(n, target.points.many), target.points.many);
  }
  return points >= target.points.many;
}

bool share_turns(std::span<const lower::MapNest> nests, expr::ExprPool& pool) {
  bool ok = true;
  bool is_shared = false;
  for (const lower::MapNest& nest : nests) {
    if (nest.axes.empty() || nest.axes.size() != nests[0].axes.size()) return false;
    const Expr last = pool.index(nest.axes.back().name);
    std::vector<Expr> turns;
    ir::for_each_op(nest.body, [&](const ir::Op& op) {
      ok &= !op.is<scalar::If>() && !op.is<scalar::Loop>();
      if (const auto* loop = op.get<scalar::For>()) {
        for (const ir::Axis& a : loop->axes) turns.push_back(pool.index(a.name));
      }
    });
    const auto look_at = [&](Expr e) {
      if (e.op() != EK::Read) return;
      const bool is_of_turn =
          std::ranges::any_of(turns, [&](Expr t) { return expr::depends_on(e, t); });
      is_shared |= is_of_turn;
      ok &= !is_of_turn || !expr::depends_on(e, last);
    };
    for (const ir::Op& op : nest.body)
      ir::for_each_expr(op, [&](Expr root) { expr::for_each(root, look_at); });
  }
  return ok && is_shared;
}

std::optional<PointsAcross> points_across(std::span<const lower::MapNest> nests,
                                          const std::map<std::string, ir::TensorType>& buffers,
                                          const target::Target& target, expr::ExprPool& pool) {
  Expr axis;
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  for (const lower::MapNest& nest : nests) {
    if (nest.axes.size() < 2 || nest.axes != nests[0].axes) return std::nullopt;
    const Expr own = transposed_axis(nest, pool, read_bytes);
    if (!own || (axis && axis != own)) return std::nullopt;
    axis = own;
    for (const std::string& w : lower::written_by(nest)) {
      const auto type = buffers.find(w);
      if (type == buffers.end() || !expr::has_vectors(type->second.dtype)) return std::nullopt;
      const int64_t bytes = expr::bytes(type->second.dtype);
      written_bytes = written_bytes == 0 ? bytes : std::min(written_bytes, bytes);
    }
  }
  if (!axis || !has_many(nests[0].axes, target)) return std::nullopt;
  PointsAcross out{std::min(target.memory.vector_bytes / written_bytes, target.points.line),
                   axis.name(), 1};
  out.across =
      std::min(target.memory.vector_bytes / read_bytes, target.points.transposed_points / out.each);
  for (const ir::Axis& a : nests[0].axes) {
    const bool is_short = a.extent.op() == EK::IntConst;
    const bool is_last = &a == &nests[0].axes.back();
    if (is_short && is_last && a.extent.integer() < out.each) return std::nullopt;
    if (is_short && a.name == out.axis && a.extent.integer() < out.across) return std::nullopt;
  }
  return out;
}

int64_t points_of_line(std::span<const lower::MapNest> nests,
                       const std::map<std::string, ir::TensorType>& buffers,
                       const target::Target& target, expr::ExprPool& pool) {
  size_t rank = 0;
  for (const lower::MapNest& nest : nests) rank = std::max(rank, nest.axes.size());
  if (rank == 0) return 1;
  int64_t most = 0;
  bool is_large = false;
  for (const lower::MapNest& nest : nests) {
    if (nest.axes.size() < rank) continue;  // computed again by each point
    const int64_t own = vector_of(nest, buffers, target, pool);
    if (own == 0) return 1;
    most = std::max(most, own);
    is_large = has_many(nest.axes, target);
    const Expr extent = nest.axes.back().extent;
    const bool is_ragged = extent.op() == EK::IntConst && extent.integer() % most != 0;
    if (is_ragged && extent.integer() < most) return 1;  // no line is ever full
  }
  return is_large ? std::min(most, target.points.line) : 1;
}

}  // namespace nautilus::choose
