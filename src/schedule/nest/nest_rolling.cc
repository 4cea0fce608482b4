// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "decision/lines.h"
#include "expr/print.h"
#include "expr/scalar_ops.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;
using scalar::For;
using scalar::LoopKind;

bool NestBuilder::is_read_in_loop(size_t k) {
  bool is_read = false;
  for (size_t r = 0; r < members().size(); ++r) {
    if (places_[r] != Place::Loop && places_[r] != Place::Rolled) continue;
    if (r == k) continue;
    expr::for_each(fusion_.inlined(pool_, member(r).value), [&](Expr e) {
      const auto p = index_of(e);
      is_read |= p && *p == k;
    });
  }
  return is_read;
}

void NestBuilder::find_steps() {
  const ir::Op* line = nullptr;
  const auto refuse = [&](const ir::Op& op, std::string_view why) {
    if (!refused_) refused_ = Rejection{"decision", decision::refusal(op, why)};
  };
  for (const ir::Op& op : sizes_.lines) {
    if (!op.is<decision::Live>()) continue;
    if (line) refuse(op, "the kernel has another line of this kind");
    line = &op;
  }
  const decision::Live* asked = line ? &line->as<decision::Live>() : nullptr;
  if (asked && asked->axis != fusion_.stream.name())
    refuse(*line,
           fmt::format("the loop of this kernel steps along `{}`", fusion_.stream.name().str()));
  if (!tiling_.has_loop()) {
    if (line) refuse(*line, "one step has the whole axis");
    return;
  }
  range_ = step_range(fusion_, rolled_, tiling_, program_, signs_,
                      asked ? std::optional(asked->kind) : std::nullopt, pool_, names_);
  if (line && !range_.refused.empty()) refuse(*line, range_.refused);
  if (!range_.kind) return;
  const decision::By by = asked ? asked->by : decision::By::Auto;
  decided_.push_back(ir::make(decision::Live{fusion_.stream.name(), *range_.kind, by}));
}

void NestBuilder::loop(ir::Block& out) {
  ir::Block body;
  ir::Block commits;
  std::vector<algebra::Moved> moved;
  for (size_t k = 0; k < members().size(); ++k) {
    if (places_[k] == Place::Loop) tile(k, body, Phase::Loop);
    if (places_[k] == Place::Rolled) roll(k, body, commits, moved);
  }
  for (ir::Op& op : commits) body.push_back(std::move(op));
  if (!tiling_.has_loop()) {
    for (ir::Op& op : body) out.push_back(std::move(op));
    return;
  }
  const StepRange& range = range_;
  for (Expr mask : range.masks)
    notes_.push_back(fmt::format("steps in which `{}` is false everywhere are left out: {} to {}",
                                 expr::to_string(mask), expr::to_string(range.first),
                                 expr::to_string(range.count)));
  for (Expr c : range.live.conditions)
    notes_.push_back(fmt::format(
        "steps in which `{}` is false everywhere are left out, by summaries of the tiles: {} to "
        "{}",
        expr::to_string(c), expr::to_string(range.live.first), expr::to_string(range.live.end)));
  for (Expr c : range.live.settled)
    notes_.push_back(fmt::format("steps in which `{}` is true everywhere: {}", expr::to_string(c),
                                 expr::to_string(range.live.full)));
  const ir::Name var = tiling_.at(fusion_.stream).tile.name();
  scalar::Loop steps{var, range.first, scalar::Direction::Up, range.count, std::move(body)};
  out.push_back(ir::make(std::move(steps)));
}

void NestBuilder::roll(size_t k, ir::Block& out, ir::Block& commits,
                       std::vector<algebra::Moved>& moved) {
  const Member& m = member(k);
  const bool is_running = is_read_in_loop(k);
  const Recurrence& recurrence = recurrences_[k];
  const Expr factor = algebra::repair_factor(pool_, recurrence.part, moved, signs_);
  const Local& state = *local_[k];
  const Expr old = local_read(state, m.dtype);
  std::optional<Local> repair;
  if (factor) repair = repair_tile(factor, out);
  const Expr stays = is_still_attained(recurrence);
  auto repaired = [&](Expr x) {
    if (repair) x = pool_.binary(Op::Mul, x, local_read(*repair, m.dtype));
    return stays ? pool_.select(stays, x, identity_of(m)) : x;
  };
  Expr moved_value = old;
  if (recurrence.shift) moved_value = move_references(k, out, commits);
  const bool is_repaired = repair || stays || recurrence.shift;
  if (!is_running) {
    if (is_repaired) emit_store(out, state, repaired(moved_value));
    if (recurrence.shift) roll_moments(k, repaired, out);
    const Expr value = moving_term(k, 0, out);
    emit_reduction(out, state, {}, fusion_.stream, m.reducer, value);
  } else {
    const Local part_of_tile =
        make_local(fmt::format("{}.step", m.target.str()), m.dtype, state.axes);
    const Expr value = moving_term(k, 0, out);
    emit_reduction(out, part_of_tile, identity_of(m), fusion_.stream, m.reducer, value);
    kept_[k] = repaired(moved_value);
    if (stays) {
      const Local kept = make_local(fmt::format("{}.kept", m.target.str()), m.dtype, state.axes);
      emit_store(out, kept, kept_[k]);
      kept_[k] = local_read(kept, m.dtype);
    }
    const Local next = make_local(fmt::format("{}.new", m.target.str()), m.dtype, state.axes);
    emit_store(
        out, next,
        pool_.binary(expr::combiner(m.reducer), kept_[k], local_read(part_of_tile, m.dtype)));
    if (recurrence.shift) roll_moments(k, repaired, out);
    new_local_[k] = next;
    emit_store(commits, state, local_read(next, m.dtype));
    moved.push_back({m.read, local_read(next, m.dtype), is_extreme(m) ? identity(m) : 0.0});
  }
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
  notes_.push_back(
      fmt::format("roll {}: {}", m.target.str(), how.empty() ? "nothing in its terms moves" : how));
}

Expr NestBuilder::is_still_attained(const Recurrence& recurrence) {
  Expr condition;
  for (Expr w : recurrence.attained) {
    const size_t k = *index_of(w);
    condition = both(condition,
                     pool_.binary(Op::Eq, kept_[k], local_read(*new_local_[k], member(k).dtype)));
  }
  return condition;
}

NestBuilder::Local NestBuilder::repair_tile(Expr factor, ir::Block& out) {
  for (const auto& [f, local] : repairs_) {
    if (f == factor) return local;
  }
  const Expr value = expr::rebuild(pool_, factor, [&](Expr e) {
    const auto k = index_of(e);
    return k && places_[*k] == Place::Rolled ? local_read(*local_[*k], member(*k).dtype) : e;
  });
  std::vector<Expr> axes;
  for (Expr a : tiling_.order()) {
    if (fusion_.is_tile_axis(a) && expr::depends_on(value, a)) axes.push_back(a);
  }
  std::stable_partition(axes.begin(), axes.end(), [&](Expr a) { return a == fusion_.row; });
  const Local local = make_local("repair", factor.dtype(), axes);
  emit_store(out, local, value);
  repairs_.emplace_back(factor, local);
  return local;
}

}  // namespace nautilus::schedule
