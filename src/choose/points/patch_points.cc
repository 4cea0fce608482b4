// SPDX-License-Identifier: Apache-2.0
#include "choose/points/patch_points.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using expr::Expr;
using EK = expr::Op;

// A reduction: what it reads and computes in each turn of its loops.
struct Terms {
  ir::Axes loops;
  std::vector<Expr> reads;
  double operations = 0;
};

// Operations of a term; one product is added in the same instruction.
double operations_of_term(Expr value) {
  double n = 0;
  const auto go = [&](const auto& self, Expr e) -> void {
    if (e.op() == EK::Read || e.args().empty()) return;
    if (expr::is_float(e.dtype()) && e.op() != EK::Cast && e.op() != EK::Select) n += 1;
    for (Expr a : e.args()) self(self, a);
  };
  go(go, value);
  return value.op() == EK::Mul ? std::max(n, 1.0) : n + 1;
}

// The reductions of a block; false if something else is in its loops.
bool collect_terms(const ir::Block& body, const ir::Axes& loops, std::vector<Terms>& out) {
  for (const ir::Op& op : body) {
    if (const auto* f = op.get<scalar::For>()) {
      ir::Axes inner = loops;
      inner.insert(inner.end(), f->axes.begin(), f->axes.end());
      if (f->kind != scalar::LoopKind::Reduce || !collect_terms(f->body, inner, out)) return false;
      continue;
    }
    if (op.is<scalar::If>()) return false;
    if (loops.empty()) continue;
    const auto* update = op.get<scalar::Update>();
    if (!update) return false;
    Terms t{loops, {}, operations_of_term(update->value)};
    expr::for_each(update->value, [&](Expr e) {
      if (e.op() == EK::Read) t.reads.push_back(e);
    });
    out.push_back(std::move(t));
  }
  return true;
}

// How the place of an element moves with a variable, in each index; nothing if not by a number.
using Moves = std::vector<std::optional<int64_t>>;

Moves moves_along(Expr read, Expr var) {
  Moves out;
  for (Expr index : read.args()) {
    if (!expr::depends_on(index, var)) {
      out.emplace_back(0);
      continue;
    }
    const auto p = expr::Poly::of(index);
    const auto parts = p ? p->split(var) : std::nullopt;
    out.push_back(parts ? parts->first.constant() : std::nullopt);
  }
  return out;
}

using Ranges = std::vector<std::pair<Expr, int64_t>>;  // variables and how many values they have

// How many places there are, of the first `indices` indices, for all values; equal ones are one.
double places_of(Expr read, size_t indices, const Ranges& ranges) {
  std::set<std::vector<int64_t>> places = {std::vector<int64_t>(indices, 0)};
  double apart = 1;  // where it is not known how places move
  for (const auto& [var, count] : ranges) {
    Moves moves = moves_along(read, var);
    moves.resize(indices);
    if (std::ranges::any_of(moves, [](const auto& m) { return !m; })) {
      apart *= static_cast<double>(count);
      continue;
    }
    if (std::ranges::all_of(moves, [](const auto& m) { return *m == 0; })) continue;
    std::set<std::vector<int64_t>> all;
    for (const std::vector<int64_t>& from : places) {
      for (int64_t n = 0; n < count; ++n) {
        std::vector<int64_t> at = from;
        for (size_t k = 0; k < at.size(); ++k) at[k] += n * *moves[k];
        all.insert(std::move(at));
      }
    }
    places = std::move(all);
  }
  return apart * static_cast<double>(places.size());
}

// Dimensions before those with constant strides: the last one, and those followed only by
// dimensions of known extents.
size_t far_dims(Expr read, const std::map<std::string, ir::TensorType>& buffers) {
  const auto type = buffers.find(std::string(read.name().str()));
  size_t k = read.args().empty() ? 0 : read.args().size() - 1;
  if (type == buffers.end()) return k;
  while (k > 0 && type->second.dims[k].op() == EK::IntConst) --k;
  return k;
}

// The axis along which lanes of a warp have neighbouring points, and how these are placed.
struct LaneAxis {
  Expr axis;
  int64_t apart = 1;  // points from one to the next
  double pieces = 1;  // that are far from each other: the axis is shorter than a warp
};

LaneAxis lane_axis(const decision::Patch& line, const ir::Axes& axes, const target::Target& target,
                   const std::function<double(Expr)>& usual, expr::ExprPool& pool) {
  size_t k = axes.size() - 1;
  if (axes[k].name == line.rows) --k;
  LaneAxis out{pool.index(axes[k].name)};
  const bool is_column = axes[k].name == line.columns;
  if (is_column) out.apart = *line.wide;
  // Consecutive rows of points are contiguous, unless threads leave some out.
  const bool is_behind = !is_column && k + 1 == axes.size() && k > 0 &&
                         axes[k - 1].name != line.rows && axes[k - 1].name != line.columns;
  const auto warp = static_cast<double>(target.limits.warp_threads);
  const double lanes = std::ceil(usual(axes[k].extent) / static_cast<double>(out.apart));
  if (!is_behind) out.pieces = std::ceil(warp / std::clamp(lanes, 1.0, warp));
  return out;
}

// Turns of the cache until a warp has its elements.
double waves_of(Expr read, const LaneAxis& lanes, const target::Target& target) {
  const auto warp = static_cast<double>(target.limits.warp_threads);
  const Moves moves = moves_along(read, lanes.axis);
  double most = 1;
  for (size_t k = 0; k < moves.size(); ++k) {
    if (moves[k] == 0) continue;
    if (!moves[k] || k + 1 < moves.size()) return warp;
    const auto bytes =
        static_cast<double>(std::abs(*moves[k]) * lanes.apart * expr::bytes(read.dtype()));
    most = std::max(lanes.pieces, bytes * warp / static_cast<double>(target.memory.line_bytes));
  }
  return std::clamp(most, 1.0, warp);
}

bool depends(Expr read, Expr axis) { return expr::depends_on(read, axis); }

// Whether some element changes along the first axis alone, and another along the second. All
// threads of a CTA have the same place along the first, so its elements are those that lanes share.
bool is_shared(const std::vector<Terms>& all, Expr rows, Expr columns, Expr lanes) {
  const auto changes = [&](Expr along, Expr other, Expr not_along) {
    return std::ranges::any_of(all, [&](const Terms& t) {
      return std::ranges::any_of(t.reads, [&](Expr e) {
        return depends(e, along) && !depends(e, other) && !(not_along && depends(e, not_along));
      });
    });
  };
  return changes(rows, columns, lanes) && changes(columns, rows, {});
}

// What all patches of a nest have in common.
struct PatchScope {
  const ir::Axes& axes;
  const std::map<std::string, ir::TensorType>& buffers;
  const target::Target& target;
  const std::function<double(Expr)>& usual;
  expr::ExprPool& pool;
};

// The unrolled code and the loads in each turn of the remaining loops.
Patch measured(const std::vector<Terms>& all, decision::Patch line, const PatchScope& scope) {
  const auto& [axes, buffers, target, usual, pool] = scope;
  Patch out{.line = std::move(line)};
  const Expr rows = pool.index(out.line.rows);
  const Expr columns = pool.index(out.line.columns);
  const LaneAxis lanes = lane_axis(out.line, axes, target, usual, pool);
  const int64_t points = *out.line.high * *out.line.wide;
  for (const Terms& t : all) {
    Ranges ranges = {{rows, *out.line.high}, {columns, *out.line.wide}};
    int64_t turns = 1;
    size_t begin = t.loops.size();
    for (; begin > 0; --begin) {
      const ir::Axis& a = t.loops[begin - 1];
      if (a.extent.op() != EK::IntConst) break;
      const int64_t n = std::max<int64_t>(a.extent.integer(), 1);
      if (turns * n * points > target.points.patch_turns) break;
      turns *= n;
      ranges.emplace_back(pool.index(a.name), n);
    }
    out.slots += static_cast<double>(turns * points) * t.operations;
    auto registers = static_cast<double>(points);
    for (Expr e : t.reads) {
      const double n = places_of(e, e.args().size(), ranges);
      // An element that another turn reads as well stays in a register until then.
      const double of_turn = places_of(e, e.args().size(), {ranges[0], ranges[1]});
      registers += n < of_turn * static_cast<double>(turns) ? n : of_turn;
      // Consecutive elements share one place.
      out.slots += n + places_of(e, far_dims(e, buffers), ranges) * target.nests.place_slots;
      out.waves += n * waves_of(e, lanes, target);
    }
    const auto free = static_cast<double>(target.limits.sm_registers / target.points.patch_threads -
                                          target.rows.spare_registers);
    out.slots += std::max(registers - free, 0.0) * target.nests.place_slots;
    const ir::Axes around(t.loops.begin(), t.loops.begin() + static_cast<std::ptrdiff_t>(begin));
    if (around.size() > out.around.size()) out.around = around;
  }
  const auto stores = static_cast<double>(points);
  out.end_slots = stores * (2 + target.nests.place_slots);
  out.end_waves = stores * std::max(lanes.pieces, static_cast<double>(lanes.apart));
  return out;
}

}  // namespace

double patch_cycles(const Patch& patch, const ir::Axes& axes, const target::Target& target,
                    const std::function<double(Expr)>& extent) {
  double threads = 1;
  for (const ir::Axis& a : axes) {
    const int64_t points = a.name == patch.line.rows      ? *patch.line.high
                           : a.name == patch.line.columns ? *patch.line.wide
                                                          : 1;
    threads *= std::ceil(std::max(extent(a.extent), 1.0) / static_cast<double>(points));
  }
  double turns = 1;
  for (const ir::Axis& a : patch.around) turns *= std::max(extent(a.extent), 1.0);
  const auto warp = static_cast<double>(target.limits.warp_threads);
  const double schedulers =
      static_cast<double>(target.limits.group_threads) / warp * target.nests.patch_share;
  const double of_warp = turns * std::max(patch.slots / schedulers, patch.waves) +
                         std::max(patch.end_slots / schedulers, patch.end_waves);
  // One warp alone waits for its own instructions.
  const double alone =
      target.nests.thread_cycles + turns * (patch.slots + target.nests.turn_cycles);
  // The last CTAs have the machine for themselves.
  const auto resident = static_cast<double>(target.board.sms * target.points.patch_threads);
  const double rounds = threads / resident;
  const double warps = std::ceil(threads / warp) * std::ceil(rounds) / rounds;
  return std::max(warps * of_warp / static_cast<double>(target.board.sms), alone);
}

std::optional<Patch> patch_points(std::span<const lower::MapNest> nests,
                                  const std::map<std::string, ir::TensorType>& buffers,
                                  const target::Target& target,
                                  const std::function<double(Expr)>& usual, expr::ExprPool& pool) {
  if (nests.empty() || nests[0].axes.size() < 2) return std::nullopt;
  const ir::Axes& axes = nests[0].axes;
  std::vector<Terms> all;
  for (const lower::MapNest& nest : nests) {
    // Elements after the reduction have its axes under other names.
    std::vector<Terms> own;
    if (!collect_terms(nest.body, {}, own)) return std::nullopt;
    if (&nest != nests.data() && !own.empty()) return std::nullopt;
    all.insert(all.end(), own.begin(), own.end());
  }
  if (all.empty()) return std::nullopt;
  const PatchScope scope = {axes, buffers, target, usual, pool};
  std::optional<Patch> best;
  double least = 0;
  // Of equal ones the patch of the last axes: its reads are close in memory.
  for (size_t r = axes.size(); r-- > 0;) {
    const ir::Axis& rows = axes[r];
    for (size_t c = axes.size(); c-- > 0;) {
      const ir::Axis& columns = axes[c];
      const Expr lanes =
          pool.index(axes[axes.size() - (axes.back().name == rows.name ? 2 : 1)].name);
      if (rows.name == columns.name ||
          !is_shared(all, pool.index(rows.name), pool.index(columns.name), lanes))
        continue;
      for (int64_t high = 2; high <= target.points.patch_side; high *= 2) {
        for (int64_t wide = 2; wide <= target.points.patch_side; wide *= 2) {
          const bool is_short = usual(rows.extent) < static_cast<double>(high) ||
                                usual(columns.extent) < static_cast<double>(wide);
          if (high * wide > target.points.patch_usual || is_short) continue;
          const Patch one = measured(all, {rows.name, high, columns.name, wide, {}}, scope);
          const double cycles = patch_cycles(one, axes, target, usual);
          if (best && cycles >= least) continue;
          best = one;
          least = cycles;
        }
      }
    }
  }
  return best;
}

}  // namespace nautilus::choose
