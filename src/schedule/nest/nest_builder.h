// SPDX-License-Identifier: Apache-2.0
// The nest of one kernel (build.h). Members become tiles before the loop, in it, or states that the
// loop rolls; the rest is written where it is read. nest_builder.cc: places, names, translation;
// nest_terms.cc: tiles and terms, and what keeps them from reading beyond the axis;
// nest_rolling.cc: the loop; nest_moments.cc: sums against references that move; nest_parts.cc:
// results and parts.
#pragma once

#include <functional>
#include <optional>

#include "expr/bounds/bounds.h"
#include "expr/scalar_ops.h"
#include "schedule/fusion/recurrence.h"
#include "schedule/nest/build.h"
#include "schedule/nest/stream_range.h"

namespace nautilus::schedule {

class NestBuilder {
 public:
  NestBuilder(const Fusion& fusion, const TileConfig& sizes, const std::set<int>& stored,
              const ir::Program& program, const algebra::Signs& signs, expr::ExprPool& pool,
              Names& names, const SplitSizes* split)
      : fusion_(with_guarded_references(fusion, pool)),
        sizes_(sizes),
        stored_(stored),
        program_(program),
        signs_(signs),
        pool_(pool),
        names_(names),
        tiling_(fusion_, sizes, pool, names),
        split_(split),
        facts_(ir::facts_of(program, pool)),
        inputs_(scalar::buffers(program, scalar::Role::Input)) {
    for (const ir::Op& op : program.body) {
      if (const auto* b = op.get<scalar::Buffer>()) types_.emplace(b->name.str(), b->type);
    }
  }

  // `once`: an axis around the kernel, or none.
  BuiltKernel run(const ir::Axes& once);
  const Tiling& tiling() const { return tiling_; }

 private:
  using DType = expr::DType;
  enum class Phase : uint8_t { Before, Loop, After };
  // Inline members have no tile of their own: their readers compute them.
  enum class Place : uint8_t { Inline, Before, Loop, Rolled, Behind };
  struct Local {
    ir::Name name;
    std::vector<Expr> axes;
  };

  const std::vector<Member>& members() const { return fusion_.members; }
  const Member& member(size_t k) const { return fusion_.members[k]; }

  static bool is_extreme(const Member& m) {
    return is_float(m.dtype) &&
           (m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min);
  }
  static double identity(const Member& m) { return expr::identity(m.reducer, m.dtype).f; }

  // Members that stored ones need, each computed once: a member that equals an earlier one is
  // another name for it.
  void find_needed();
  void need(size_t k);
  std::optional<size_t> index_of(Expr read) const;

  void place(size_t k);

  // The steps of the loop, as the line `live` says or by rule.
  void find_steps();

  // Rows come first: the tile of an accumulator is [rows, columns].
  std::vector<Expr> tile_axes(const Member& m) const;

  ir::Name fresh_buffer(std::string_view stem);

  Local make_local(std::string_view stem, DType dtype, std::vector<Expr> axes);

  int64_t lane_extent(Expr axis) const;

  Expr local_read(const Local& local, DType dtype);

  ir::Axes lanes(const std::vector<Expr>& axes);

  Expr both(Expr a, Expr b) { return !a ? b : !b ? a : pool_.binary(expr::Op::And, a, b); }

  // The condition that a place of a tile lies inside the axes an expression uses.
  Expr range_of(Expr e);

  // The condition for one axis: its own range, or that the tensor goes on. Rows and columns beyond
  // the range are never stored, so `X[i + r]` may read what lies there.
  Expr in_tensor(Expr e, const TileAxis& t);

  // An expression of the fusion inside the kernel.
  Expr translated(Expr e, Phase phase);
  Expr translated(Expr e, Phase phase, std::unordered_map<Expr, Expr>& memo);
  Expr new_translation(Expr e, Phase phase, std::unordered_map<Expr, Expr>& memo);

  // What is written in the place of a part of a mask may contain that part.
  Expr instead_of(Expr other, Phase phase);

  Expr member_value(size_t k, Phase phase, std::unordered_map<Expr, Expr>& memo);

  void emit_store(ir::Block& out, const Local& local, Expr value);

  // init, and / or a reduce loop with the update.
  void emit_reduction(ir::Block& out, const Local& local, Expr init, Expr axis,
                      expr::Reducer reducer, Expr value);

  void choose_guards();

  // Whether a rolled reduction gets nothing from beyond the streamed extent as things stand.
  bool is_identity_past_end(size_t k);

  // Whether the value depends on what other kernels computed, elements along an axis left out.
  bool reads_results(Expr e, Expr but_along = {}) const;
  // No fact says that an axis has points.
  bool may_be_empty(Expr axis);

  // A contraction whose tensor operand reads as 0 beyond the axis, and whose other operand is
  // finite there. Results of reductions are, unless they are over nothing: the first step runs even
  // then.
  bool is_zero_filled(size_t k, Expr axis);

  Expr number(double value, DType dtype);
  Expr identity_of(const Member& m);

  // The condition that a place of a step lies inside the streamed axis; null: it always does.
  // Steps of a list that are full are known to.
  Expr in_stream();

  // The value a reduction adds for one place of a tile. A computed operand of a contraction gets a
  // tile of its own, in front.
  Expr term(size_t k, Expr axis, ir::Block& out, Phase phase);

  void before(size_t k, ir::Block& out);

  // An element-wise tile or an inner reduction.
  void tile(size_t k, ir::Block& out, Phase phase);

  bool is_read_in_loop(size_t k);

  void loop(ir::Block& out);

  void roll(size_t k, ir::Block& out, ir::Block& commits, std::vector<algebra::Moved>& moved);

  // The condition that no extreme moved which the terms must attain; null: there is none.
  Expr is_still_attained(const Recurrence& recurrence);

  // A sum of polynomials: the sums of the derivatives, and the values they are all taken against.
  struct Moving {
    std::vector<Local> sums;  // of the derivatives, the member's own sum first
    std::vector<Local> references;
    std::vector<Local> next;
    std::vector<Expr> steps;
  };

  void start_references(size_t k, ir::Block& out);

  // The references after this step, and the member's own sum against them.
  Expr move_references(size_t k, ir::Block& out, ir::Block& commits);

  std::vector<Expr> sums_of(size_t k);

  // The sums of the derivatives; each needs those above it as they were.
  void roll_moments(size_t k, const std::function<Expr(Expr)>& repaired, ir::Block& out);

  // A term of a rolled member, or a derivative of it, against the new references.
  Expr moving_term(size_t k, size_t moment, ir::Block& out);
  Expr moving_value(size_t k, size_t moment);

  // After the loop: what was taken for all of the axis is replaced by what all of it gave.
  void settle_references(size_t k, ir::Block& out);

  // Places of the streamed axis in this step, and of all axes that are reduced together.
  Expr places_in_step(DType dtype);
  Expr all_places(DType dtype);

  // The factor is computed once for all that share it.
  Local repair_tile(Expr factor, ir::Block& out);

  // The steps of one part. One that the masks leave nothing of runs a step that is masked.
  StepRange part_of(StepRange range);

  // Writes what a part has of a rolled value.
  void store_part(size_t k, ir::Block& out);

  // A reduction that every part has before its steps; the first part hands it out.
  bool is_before(size_t k) const;

  // The nests that put parts together, and their buffers.
  ir::Block combined(std::vector<scalar::Buffer>& buffers);

  // Writes a member's value to memory.
  void after(size_t k, ir::Block& out);

  // One of the tiles that have the same value writes it: the condition, or null.
  Expr is_writer(const Member& m);
  // Whether a stored result lacks this axis and must be written even if the axis is empty.
  bool runs_when_empty(Expr axis) const;
  // The number of tiles along such an axis.
  Expr at_least_one(Expr axis, Expr count);

  void store(ir::Name target, const ir::Exprs& indices, Expr value, Expr condition,
             const std::vector<Expr>& axes, ir::Block& out);

  Fusion fusion_;
  const TileConfig& sizes_;
  const std::set<int>& stored_;
  const ir::Program& program_;
  const algebra::Signs& signs_;
  expr::ExprPool& pool_;
  Names& names_;
  Tiling tiling_;
  std::map<std::string, ir::TensorType, std::less<>> types_;
  const SplitSizes* split_;  // null: the streamed axis is whole
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> inputs_;
  std::vector<PartValue> part_values_;
  std::vector<size_t> alias_;
  std::vector<bool> needed_;
  std::vector<Place> places_;
  std::vector<std::optional<Local>> local_;
  std::vector<std::optional<Local>> new_local_;
  std::vector<Recurrence> recurrences_;  // of rolled members
  std::vector<Moving> moving_;
  std::vector<Expr> kept_;     // what a running member keeps of the steps before
  std::optional<Local> seen_;  // number of places of the streamed axis
  std::optional<Local> new_seen_;
  std::vector<size_t> rolled_;
  std::vector<RangeGuard> guards_;
  std::set<size_t> own_guard_;
  std::vector<std::pair<Expr, Local>> repairs_;
  StepRange range_;
  ir::Block decided_;
  std::optional<Rejection> refused_;
  std::vector<scalar::Buffer> locals_;
  std::vector<std::string> notes_;
};

}  // namespace nautilus::schedule
