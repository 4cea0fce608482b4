// SPDX-License-Identifier: Apache-2.0
#include "choose/points/spread_points.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "choose/points/point_lines.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using expr::Expr;
using EK = expr::Op;

// Threads that have neighbouring points of a short row, at least: a vector of the narrowest
// results.
int64_t least_along_last(const target::Target& target) {
  return target.memory.vector_bytes / expr::bytes(expr::DType::BF16);
}

// What the loops of a kernel say about its windows.
struct Windows {
  int64_t turns = 0;     // of the longest
  bool is_known = true;  // all turns are, and nothing branches
  bool is_near = false;  // something is read near what neighbours along the last axis read
  bool is_one = false;   // places of what is read move with a point and with a turn
  bool is_tall = false;  // windows have several rows
};

// By how much the index moves with the axis, if by equal steps; else 0.
int64_t step_along(Expr index, Expr axis) {
  const auto p = expr::Poly::of(index);
  const auto parts = p ? p->split(axis) : std::nullopt;
  return parts ? std::abs(parts->first.constant().value_or(0)) : 0;
}

// The points that read windows.
struct WindowPoints {
  const ir::Axes& axes;
  int64_t near_bytes;
  expr::ExprPool& pool;
};

void look(const ir::Block& body, const WindowPoints& points, const ir::Axes& loops, int64_t turns,
          Windows& out) {
  const ir::Axes& axes = points.axes;
  expr::ExprPool& pool = points.pool;
  const Expr last = pool.index(axes.back().name);
  const Expr row = axes.size() > 1 ? pool.index(axes[axes.size() - 2].name) : Expr();
  for (const ir::Op& op : body) {
    if (op.is<scalar::If>()) out.is_known = false;
    if (const auto* f = op.get<scalar::For>()) {
      ir::Axes inner = loops;
      int64_t all = std::max<int64_t>(turns, 1);
      for (const ir::Axis& a : f->axes) {
        const bool is_constant = a.extent.op() == EK::IntConst;
        out.is_known &= is_constant && f->kind == scalar::LoopKind::Reduce;
        all *= is_constant ? std::max<int64_t>(a.extent.integer(), 1) : 1;
        inner.push_back(a);
      }
      out.turns = std::max(out.turns, all);
      look(f->body, points, inner, all, out);
      continue;
    }
    const auto is_in_loop = [&](Expr index) {
      return std::any_of(loops.begin(), loops.end(), [&](const ir::Axis& a) {
        return expr::depends_on(index, pool.index(a.name));
      });
    };
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() != EK::Read || e.args().empty() || loops.empty()) return;
        const int64_t step = step_along(e.args().back(), last) * expr::bytes(e.dtype());
        out.is_near |= step > 0 && step <= points.near_bytes;
        for (Expr index : e.args()) {
          out.is_one |= is_in_loop(index) && std::any_of(axes.begin(), axes.end(), [&](auto& a) {
                          return expr::depends_on(index, pool.index(a.name));
                        });
        }
        for (size_t k = 0; k + 1 < e.args().size(); ++k)
          out.is_tall |= row && is_in_loop(e[k]) && step_along(e[k], row) != 0;
      });
    });
  }
}

// The number of neighbouring threads, at least `least`, that leaves few of them without a point, or
// a piece of points.
int64_t threads_along_last(const ir::Axes& axes, double columns, int64_t least,
                           const target::Target& target) {
  const auto filled = [&](int64_t threads) {
    const auto n = static_cast<double>(threads);
    return columns / (std::ceil(columns / n) * n);
  };
  int64_t out = target.points.threads;
  if (axes.size() == 1) return out;
  for (int64_t n = out / 2; n >= least; n /= 2) {
    if (filled(n) > filled(out) * target.points.worth_narrower) out = n;
  }
  return out;
}

// Whether reads have quotients or remainders of the last axis by a number that is not a power of
// two, or of both last axes: in element-wise work these are most of a thread's instructions.
bool is_divided(std::span<const lower::MapNest> nests, expr::ExprPool& pool) {
  bool is_found = false;
  for (const lower::MapNest& nest : nests) {
    const Expr last = pool.index(nest.axes.back().name);
    const Expr row = pool.index(nest.axes[nest.axes.size() - 2].name);
    bool has_row = false;
    bool has_last = false;
    const auto look_at = [&](Expr x) {
      if (x.op() != EK::FloorDiv && x.op() != EK::Mod) return;
      has_row |= expr::depends_on(x, row);
      if (!expr::depends_on(x, last)) return;
      has_last = true;
      const bool is_shift = x[1].op() == EK::IntConst && x[1].integer() > 0 &&
                            std::has_single_bit(static_cast<uint64_t>(x[1].integer()));
      is_found |= !is_shift;
    };
    ir::for_each_op(nest.body, [&](const ir::Op& op) {
      ir::for_each_expr(op, [&](Expr root) {
        expr::for_each(root, [&](Expr e) {
          if (e.op() != EK::Read) return;
          for (Expr index : e.args()) {
            const bool had_last = std::exchange(has_last, false);
            expr::for_each(index, look_at);
            // A window that is written out, `row + last % taps`.
            is_found |= has_last && expr::depends_on(index, row);
            has_last |= had_last;
          }
        });
      });
    });
    is_found |= has_row && has_last;
  }
  return is_found;
}

}  // namespace

std::optional<decision::Spread> spread_lines(std::span<const lower::MapNest> nests, int64_t each,
                                             const target::Target& target,
                                             const std::function<double(Expr)>& usual) {
  if (nests.empty() || nests[0].axes.size() < 2) return std::nullopt;
  const ir::Axes& axes = nests[0].axes;
  double lines = 1;
  for (const ir::Axis& a : axes) lines *= std::max(usual(a.extent), 1.0);
  lines /= static_cast<double>(each);
  const double of_row = std::ceil(usual(axes.back().extent) / static_cast<double>(each));
  // Rows of 64 elements of 16 bits have 8 pieces, so a warp has four rows; 32 threads along a row
  // would leave three of four without a piece (group norm of 64 x 64 pixels 0.205 ms, 0.120 without
  // tiles).
  const int64_t least = target.memory.line_bytes / target.memory.vector_bytes;
  decision::Spread out{threads_along_last(axes, of_row, least, target), 1, target.points.each, {}};
  const double rows = static_cast<double>(target.points.threads / *out.threads * *out.down);
  const auto resident = static_cast<double>(target.board.sms * target.limits.sm_threads);
  const bool has_rows = usual(axes[axes.size() - 2].extent) >= rows;
  return has_rows && lines >= resident * static_cast<double>(*out.down) ? std::optional(out)
                                                                        : std::nullopt;
}

std::optional<decision::Spread> spread_points(std::span<const lower::MapNest> nests,
                                              const target::Target& target,
                                              const std::function<double(Expr)>& usual,
                                              expr::ExprPool& pool) {
  if (nests.empty() || nests[0].axes.empty() || !has_many(nests[0].axes, target))
    return std::nullopt;
  Windows windows;
  for (const lower::MapNest& nest : nests) {
    if (nest.axes.size() != nests[0].axes.size()) return std::nullopt;
    look(nest.body, {nest.axes, target.memory.vector_bytes, pool}, {}, 0, windows);
  }
  if (windows.is_known && windows.turns == 0 && nests[0].axes.size() > 1 &&
      is_divided(nests, pool)) {
    // Neighbours below each other share quotients of the last axis, those apart the others.
    const ir::Axes& axes = nests[0].axes;
    const double columns = usual(axes.back().extent);
    const int64_t least = least_along_last(target);
    if (columns < static_cast<double>(least)) return std::nullopt;
    const int64_t beside = threads_along_last(axes, columns, least, target);
    decision::Spread out{std::min<int64_t>(beside, target.limits.warp_threads),
                         target.points.each,
                         target.points.each,
                         {}};
    // Tiles of several points apart may leave more of a short row empty.
    const auto tiles = [&](int64_t n) { return std::ceil(columns / static_cast<double>(n)); };
    while (*out.apart > 1 && tiles(*out.threads * *out.apart) * static_cast<double>(*out.apart) >
                                 tiles(*out.threads) * target.points.worth_narrower)
      *out.apart /= 2;
    return out;
  }
  if (!windows.is_known || !windows.is_near || !windows.is_one || windows.turns < 2 ||
      windows.turns > target.points.unrolled)
    return std::nullopt;
  const ir::Axes& axes = nests[0].axes;
  const double columns = std::max(usual(axes.back().extent), 1.0);
  decision::Spread out{
      threads_along_last(axes, columns, target.limits.warp_threads, target), 1, 1, {}};
  // Windows of several rows share rows with the warps below: 4x4 pixels 3.15 ms with 32 threads
  // along a row, 3.47 with 128.
  if (windows.is_tall) out.threads = std::min<int64_t>(*out.threads, target.limits.warp_threads);
  const bool is_short = columns < static_cast<double>(target.points.each * *out.threads);
  // Points above each other share what they load; those apart only what is asked once.
  const bool is_down = axes.size() > 1 && (windows.is_tall || is_short);
  auto& several = is_down ? out.down : out.apart;
  const int64_t most = is_down ? target.points.each : target.points.line;
  while (*several < most && windows.turns * *several * 2 <= target.points.unrolled) *several *= 2;
  return out;
}

}  // namespace nautilus::choose
