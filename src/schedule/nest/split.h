// SPDX-License-Identifier: Apache-2.0
// A split streamed axis: parts with their own tiles of the grid, and the statements that combine
// the parts.
//
//   for i < M map                                  for i0 < .., s < j_parts grid
//     init m[i] = -inf                               m, l, u of the steps of part s
//     for j < N reduce                               store m.parts[s, i], l.parts[s, i], ...
//       update m[i] max T[i, j]                    for i < M map
//   for i < M map                       becomes      init m.all[i] = -inf
//     init l[i] = 0.0                                for s < j_parts reduce
//     for j < N reduce                                 update m.all[i] max m.parts[s, i]
//       update l[i] sum exp2(T[i, j] - m[i])       for i < M map
//                                                    init l.all[i] = 0.0
//                                                    for s < j_parts reduce
//                                                      update l.all[i] sum l.parts[s, i] *
//                                                        exp2(m.parts[s, i] - finite(m.all[i]))
//
// The factor is that of the rolling loop, from the part's own reference to the common one
// (algebra/repair.h), so whatever can be rolled can be split. A part that is empty or masked
// altogether holds identities. The number of parts is a size that the plan computes. Exactness
// class: exact over the reals.
#pragma once

#include "schedule/fusion/tiling.h"

namespace nautilus::schedule {

struct Split {
  static constexpr int64_t kFill = -1;
  int64_t parts = 0;      // the most parts; kFill: as many as fill the machine; 0: no parts
  bool or_whole = false;  // where one part is enough, a kernel without parts runs instead
  // The tile of the part that finishes last combines the parts; otherwise another kernel does.
  bool combines_last = false;

  bool is_on() const { return parts != 0; }
};

// Names of a split kernel's sizes.
struct SplitSizes {
  Expr part;      // axis of the grid
  Expr run_axis;  // axis of the statements that run with only one of the two kernels, with parts or
                  // without; or null
  Expr steps;     // of the whole axis
  Expr tiles;     // of the kernel without parts, at least 1; null if not needed
  Expr target_parts;    // parts that would be good; null if not needed
  Expr steps_per_part;  // steps of a part
  Expr parts;
  Expr split;     // parts, or 0 where the kernel without parts runs
  Expr is_whole;  // 1 where it runs, else 0; null: it never does
  Expr is_split;  // 1 - is_whole
  bool combines_last = false;
};

SplitSizes name_split_sizes(const Fusion& fusion, const Split& split, expr::ExprPool& pool,
                            Names& names);

// The declarations, given the tiles of the kernel without parts.
ir::Block declare_split_sizes(const FusionScope& scope, const SplitSizes& s,
                              const TileConfig& sizes, const Split& split, Expr tiles);

// The number of tiles of a kernel without parts.
Expr count_tiles(const Fusion& fusion, const Tiling& tiling, expr::ExprPool& pool);

// Why the fusion cannot be split; nothing if it can.
std::optional<Rejection> refuse_split(const FusionScope& scope, const Tiling& tiling);

// Why the last tile cannot combine the parts; nothing if it can.
std::optional<Rejection> refuse_last_tile(const Fusion& fusion, const Tiling& tiling,
                                          const TileConfig& sizes);

// Fewest steps that are worth a part: the states of a part are written once and read once.
int64_t least_steps(const Fusion& fusion, const TileConfig& sizes);

// The position of the part's number among the indices of a stored part: first, or after the row if
// the last tile reads all parts of its rows.
size_t place_of_part(const Fusion& fusion, const Member& m, const SplitSizes& s);

// A rolled value: the buffer of its parts, and the buffer of the combined value.
struct PartValue {
  size_t member = 0;
  ir::Name parts;
  ir::Name whole;
};

// A stored member, and its value from rolled ones.
struct LateValue {
  size_t member = 0;
  Expr value;
};

// The reductions over parts for `values` (in order of dependence), and the stored members that
// follow from them.
ir::Block combine_parts(const FusionScope& scope, const std::vector<PartValue>& values,
                        const std::vector<LateValue>& stored, const SplitSizes& s);

// The split that a kernel gets by rule. `why`: for people; empty where the reason is obvious.
Split choose_split(const FusionScope& scope, const TileConfig& sizes, std::string* why);

}  // namespace nautilus::schedule
