// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/rolling_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/print.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

// The value of a reference before any element: the identity of an extreme, 0 for a sum.
double start_of(const Member& m) {
  const bool is_extreme = m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min;
  return is_float(m.dtype) && is_extreme ? expr::identity(m.reducer, m.dtype).f : 0.0;
}

// For people; empty if nothing has to be done.
std::string how_rolled(Expr factor, const Recurrence& recurrence) {
  std::string how;
  if (factor) how = fmt::format("repaired by {}", expr::to_string(factor));
  for (Expr w : recurrence.attained)
    how +=
        fmt::format("{}starts again where {} moves", how.empty() ? "" : ", ", expr::to_string(w));
  if (recurrence.shift) {
    for (Expr r : recurrence.shift->references)
      how += fmt::format("{}moved along with {}, by {} sums", how.empty() ? "" : ", ",
                         expr::to_string(r), recurrence.shift->moments.size());
  }
  return how;
}

}  // namespace

void RollingLoop::start(size_t k, ir::Block& out) {
  const Member& m = f_.member(k);
  // The initial element is used once, where parts are combined.
  const Expr init =
      f_.split ? f_.identity_of(m) : translation_.translated(m.init, NestPhase::Before);
  f_.tiles.emit_reduction(out, *f_.placed[k].tile, init, {}, m.reducer, {});
  if (f_.placed[k].recurrence.shift) moving_.start(k, out);
}

void RollingLoop::emit(ir::Block& out) {
  ir::Block body;
  ir::Block commits;
  std::vector<algebra::Moved> moved;
  // Sums of products that the loop does not read come last: the pipeline makes them wait, and tiles
  // that later ops read would be held as long.
  const auto is_last = [&](size_t k) {
    return f_.placed[k].place == MemberPlace::Rolled && f_.fusion.dot_of(k) && !is_read_in_loop(k);
  };
  for (size_t k = 0; k < f_.members().size(); ++k) {
    if (f_.placed[k].place == MemberPlace::Loop) terms_.tile(k, body, NestPhase::Loop);
    if (f_.placed[k].place == MemberPlace::Rolled && !is_last(k)) roll(k, body, commits, moved);
  }
  for (size_t k = 0; k < f_.members().size(); ++k) {
    if (is_last(k)) roll(k, body, commits, moved);
  }
  for (ir::Op& op : commits) body.push_back(std::move(op));
  if (!f_.tiling.has_loop()) {
    for (ir::Op& op : body) out.push_back(std::move(op));
    return;
  }
  note_steps();
  const StepRange& range = f_.range;
  const ir::Name var = f_.tiling.at(f_.fusion.stream).tile.name();
  scalar::Loop steps{var, range.first, scalar::Direction::Up, range.count, std::move(body)};
  out.push_back(ir::make(std::move(steps)));
}

void RollingLoop::note_steps() {
  const StepRange& range = f_.range;
  for (Expr mask : range.masks)
    f_.notes.push_back(fmt::format("steps in which `{}` is false everywhere are left out: {} to {}",
                                   expr::to_string(mask), expr::to_string(range.first),
                                   expr::to_string(range.count)));
  for (Expr c : range.live.conditions)
    f_.notes.push_back(fmt::format(
        "steps in which `{}` is false everywhere are left out, by summaries of the tiles: {} to "
        "{}",
        expr::to_string(c), expr::to_string(range.live.first), expr::to_string(range.live.end)));
  for (Expr c : range.live.settled)
    f_.notes.push_back(fmt::format("steps in which `{}` is true everywhere: {}", expr::to_string(c),
                                   expr::to_string(range.live.full)));
}

void RollingLoop::roll(size_t k, ir::Block& out, ir::Block& commits,
                       std::vector<algebra::Moved>& moved) {
  const Member& m = f_.member(k);
  const bool is_running = is_read_in_loop(k);
  const Recurrence& recurrence = f_.placed[k].recurrence;
  const Expr factor = algebra::repair_factor(f_.pool, recurrence.part, moved, f_.signs);
  const LocalTile& state = *f_.placed[k].tile;
  const Expr old = f_.tiles.read(state, m.dtype);
  std::optional<LocalTile> repair;
  if (factor) repair = repair_tile(factor, out);
  const Expr stays = is_still_attained(recurrence);
  auto repaired = [&](Expr x) {
    if (repair) x = f_.pool.binary(Op::Mul, x, f_.tiles.read(*repair, m.dtype));
    return stays ? f_.pool.select(stays, x, f_.identity_of(m)) : x;
  };
  Expr moved_value = old;
  if (recurrence.shift) moved_value = moving_.move(k, out, commits);
  const bool is_repaired = repair || stays || recurrence.shift;
  if (!is_running) {
    if (is_repaired) f_.tiles.emit_store(out, state, repaired(moved_value));
    if (recurrence.shift) moving_.roll_moments(k, repaired, out);
    const Expr value = term(k, out);
    f_.tiles.emit_reduction(out, state, {}, f_.fusion.stream, m.reducer, value);
  } else {
    const LocalTile part_of_tile =
        f_.tiles.make(fmt::format("{}.step", m.target.str()), m.dtype, state.axes);
    const Expr value = term(k, out);
    f_.tiles.emit_reduction(out, part_of_tile, f_.identity_of(m), f_.fusion.stream, m.reducer,
                            value);
    kept_[k] = repaired(moved_value);
    if (stays) {
      const LocalTile kept =
          f_.tiles.make(fmt::format("{}.kept", m.target.str()), m.dtype, state.axes);
      f_.tiles.emit_store(out, kept, kept_[k]);
      kept_[k] = f_.tiles.read(kept, m.dtype);
    }
    const LocalTile next =
        f_.tiles.make(fmt::format("{}.new", m.target.str()), m.dtype, state.axes);
    f_.tiles.emit_store(
        out, next,
        f_.pool.binary(expr::combiner(m.reducer), kept_[k], f_.tiles.read(part_of_tile, m.dtype)));
    if (recurrence.shift) moving_.roll_moments(k, repaired, out);
    f_.placed[k].next = next;
    f_.tiles.emit_store(commits, state, f_.tiles.read(next, m.dtype));
    moved.push_back({m.read, f_.tiles.read(next, m.dtype), start_of(m)});
  }
  const std::string how = how_rolled(factor, recurrence);
  f_.notes.push_back(
      fmt::format("roll {}: {}", m.target.str(), how.empty() ? "nothing in its terms moves" : how));
}

Expr RollingLoop::term(size_t k, ir::Block& out) {
  if (f_.placed[k].recurrence.shift) return moving_.term(k, 0);
  return terms_.term(k, f_.fusion.stream, out, NestPhase::Loop);
}

bool RollingLoop::is_read_in_loop(size_t k) {
  bool is_read = false;
  for (size_t r = 0; r < f_.members().size(); ++r) {
    if (f_.placed[r].place != MemberPlace::Loop && f_.placed[r].place != MemberPlace::Rolled)
      continue;
    if (r == k) continue;
    expr::for_each(f_.fusion.inlined(f_.pool, f_.member(r).value), [&](Expr e) {
      const auto p = f_.index_of(e);
      is_read |= p && *p == k;
    });
  }
  return is_read;
}

Expr RollingLoop::is_still_attained(const Recurrence& recurrence) {
  Expr condition;
  for (Expr w : recurrence.attained) {
    const size_t k = *f_.index_of(w);
    condition = f_.both(
        condition,
        f_.pool.binary(Op::Eq, kept_[k], f_.tiles.read(*f_.placed[k].next, f_.member(k).dtype)));
  }
  return condition;
}

LocalTile RollingLoop::repair_tile(Expr factor, ir::Block& out) {
  for (const auto& [f, local] : repairs_) {
    if (f == factor) return local;
  }
  const Expr value = expr::rebuild(f_.pool, factor, [&](Expr e) {
    const auto k = f_.index_of(e);
    return k && f_.placed[*k].place == MemberPlace::Rolled
               ? f_.tiles.read(*f_.placed[*k].tile, f_.member(*k).dtype)
               : e;
  });
  std::vector<Expr> axes;
  for (Expr a : f_.tiling.order()) {
    if (f_.fusion.is_tile_axis(a) && expr::depends_on(value, a)) axes.push_back(a);
  }
  std::stable_partition(axes.begin(), axes.end(), [&](Expr a) { return a == f_.fusion.row; });
  const LocalTile local = f_.tiles.make("repair", factor.dtype(), axes);
  f_.tiles.emit_store(out, local, value);
  repairs_.emplace_back(factor, local);
  return local;
}

}  // namespace nautilus::schedule
