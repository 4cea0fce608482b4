// SPDX-License-Identifier: Apache-2.0
// The state that the phases of writing a nest (nest_builder.h) share: the fusion, the tiling of its
// axes, where each member is computed and which tile holds it, and the nest so far.
#pragma once

#include <optional>

#include "schedule/fusion/recurrence.h"
#include "schedule/nest/nest_tiles.h"
#include "schedule/nest/split.h"
#include "schedule/nest/stream_range.h"

namespace nautilus::schedule {

// Where an expression is written, relative to the loop over steps.
enum class NestPhase : uint8_t { Before, Loop, After };

// Where a member is computed. Inline members have no tile of their own: their readers compute them.
enum class MemberPlace : uint8_t { Inline, Before, Loop, Rolled, Behind };

struct PlacedMember {
  size_t same_as = 0;  // the earlier member that equals this one, or its own index
  bool is_needed = false;
  MemberPlace place = MemberPlace::Inline;
  std::optional<LocalTile> tile;
  std::optional<LocalTile> next;  // of a rolled member that the loop reads: its value in this step
  Recurrence recurrence;          // of a rolled member
};

struct NestFrame {
  NestFrame(const FusionScope& of, const TileConfig& tile_sizes,
            const std::set<int>& stored_statements, Names& taken, const SplitSizes* split_sizes)
      : fusion(with_guarded_references(of.fusion, of.pool)),
        sizes(tile_sizes),
        stored(stored_statements),
        program(of.program),
        signs(of.signs),
        pool(of.pool),
        names(taken),
        tiling(fusion, tile_sizes, pool, taken),
        split(split_sizes),
        tiles(tiling, tile_sizes, pool, taken) {}
  // Its members and the phases hold references to it.
  NestFrame(const NestFrame&) = delete;
  NestFrame& operator=(const NestFrame&) = delete;

  // With the fusion as it is here, guarded.
  FusionScope scope() const { return {fusion, program, signs, pool}; }
  const std::vector<Member>& members() const { return fusion.members; }
  const Member& member(size_t k) const { return fusion.members[k]; }
  bool is_stored(size_t k) const { return stored.contains(member(k).statement); }
  // The member that is read.
  std::optional<size_t> index_of(Expr read) const;
  // Rows come first: the tile of an accumulator is [rows, columns].
  std::vector<Expr> tile_axes(const Member& m) const;

  Expr both(Expr a, Expr b) { return !a ? b : !b ? a : pool.binary(expr::Op::And, a, b); }
  Expr number(double value, expr::DType dtype);
  Expr identity_of(const Member& m);

  Fusion fusion;
  const TileConfig& sizes;
  const std::set<int>& stored;
  const ir::Program& program;
  const algebra::Signs& signs;
  expr::ExprPool& pool;
  Names& names;
  Tiling tiling;
  const SplitSizes* split;  // null: the streamed axis is whole
  NestTiles tiles;
  std::vector<PlacedMember> placed;
  std::vector<size_t> rolled;  // members
  StepRange range;
  std::vector<std::string> notes;
};

}  // namespace nautilus::schedule
