// SPDX-License-Identifier: Apache-2.0
// Ops of roles around shared memory: slots of rings are filled, got and released, turns are
// entered, and products are issued on operands there.
#pragma once

#include "ir/op.h"

namespace nautilus::matile {

enum class DotMode : uint8_t { Init, Add };
const std::vector<std::string_view>& words(DotMode);
enum class Trans : uint8_t { No, Yes };
const std::vector<std::string_view>& words(Trans);
enum class Reach : uint8_t { Own, Multicast };
const std::vector<std::string_view>& words(Reach);

struct Fill {
  static constexpr std::string_view kFormat = "fill $ring{ each $group}$body";
  static constexpr std::string_view kDoc =
      "Waits until the ring's next slot is free and starts the copies of the block into it. "
      "each g: so for every group g that has its own ring.";
  ir::Name ring;
  ir::Name group;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("ring", s.ring);
    f("group", s.group);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Copy {
  static constexpr std::string_view kFormat =
      "copy $slot_tile from $map[$at]{ panel $panel}{ $reach}";
  static constexpr std::string_view kDoc =
      "One box of a map into a slot tile of the slot being filled. panel: into this panel of the "
      "slot tile, "
      "of which the box is as wide as one; for rows whose length is no multiple of a panel. "
      "multicast: "
      "the box is this CTA's share of the slot tile, by rank, and every CTA of the cluster gets "
      "all "
      "shares; `at` is where the whole slot tile begins, the same in all CTAs.";
  ir::Name slot_tile;
  ir::Name map;
  ir::Exprs at;
  ir::OptionalInt panel;
  Reach reach = Reach::Own;
  static void fields(auto& s, auto&& f) {
    f("slot_tile", s.slot_tile);
    f("map", s.map);
    f("at", s.at);
    f("panel", s.panel);
    f("reach", s.reach);
  }
  static const ir::OpInfo& info();
};

struct Get {
  static constexpr std::string_view kFormat = "get $ring";
  static constexpr std::string_view kDoc =
      "Waits until the ring's next slot is full. Its slot tiles are then the operands of `dot`.";
  ir::Name ring;
  static void fields(auto& s, auto&& f) { f("ring", s.ring); }
  static const ir::OpInfo& info();
};

struct Release {
  static constexpr std::string_view kFormat = "release $ring";
  static constexpr std::string_view kDoc =
      "Gives the oldest slot that this group holds back to the filling role.";
  ir::Name ring;
  static void fields(auto& s, auto&& f) { f("ring", s.ring); }
  static const ir::OpInfo& info();
};

struct Skip {
  static constexpr std::string_view kFormat = "skip $ring";
  static constexpr std::string_view kDoc = "Gets and releases a slot that only other groups use.";
  ir::Name ring;
  static void fields(auto& s, auto&& f) { f("ring", s.ring); }
  static const ir::OpInfo& info();
};

struct Jump {
  static constexpr std::string_view kFormat = "jump $ring by $slots";
  static constexpr std::string_view kDoc = "Steps over slots that another group gets and releases.";
  ir::Name ring;
  ir::Expr slots;
  static void fields(auto& s, auto&& f) {
    f("ring", s.ring);
    f("slots", s.slots);
  }
  static const ir::OpInfo& info();
};

struct Enter {
  static constexpr std::string_view kFormat = "enter $turn";
  static constexpr std::string_view kDoc = "Waits for this group's turn.";
  ir::Name turn;
  static void fields(auto& s, auto&& f) { f("turn", s.turn); }
  static const ir::OpInfo& info();
};

struct Leave {
  static constexpr std::string_view kFormat = "leave $turn";
  static constexpr std::string_view kDoc = "Passes the turn on.";
  ir::Name turn;
  static void fields(auto& s, auto&& f) { f("turn", s.turn); }
  static const ir::OpInfo& info();
};

struct Dot {
  static constexpr std::string_view kFormat =
      "dot $acc $mode $a{ rows $rows}{ $trans_a}, $b{ $trans}";
  static constexpr std::string_view kDoc =
      "Starts a matrix product: acc (+)= a . b as one asynchronous group. a is a slot tile of a "
      "slot or a register tile, b a slot tile. `trans` behind b: it is stored as columns by depth; "
      "behind a: a slot tile that is stored as depth by rows. rows: the first row of a.";
  ir::Name acc;
  DotMode mode = DotMode::Init;
  ir::Name a;
  ir::Expr rows;
  Trans trans_a = Trans::No;
  ir::Name b;
  Trans trans = Trans::No;
  static void fields(auto& s, auto&& f) {
    f("acc", s.acc);
    f("mode", s.mode);
    f("a", s.a);
    f("rows", s.rows);
    f("trans_a", s.trans_a);
    f("b", s.b);
    f("trans", s.trans);
  }
  static const ir::OpInfo& info();
};

struct WarpDot {
  static constexpr std::string_view kFormat = "warpdot $acc $a{ rows $rows}, $b $trans";
  static constexpr std::string_view kDoc =
      "The rows of this warp of acc = a . b, computed at once and by this warp alone, so that it "
      "may "
      "stand under a vote: the way to repeat a product whose accumulator was overwritten. a and b "
      "are slot tiles of slots held.";
  ir::Name acc;
  ir::Name a;
  ir::Expr rows;
  ir::Name b;
  Trans trans = Trans::Yes;
  static void fields(auto& s, auto&& f) {
    f("acc", s.acc);
    f("a", s.a);
    f("rows", s.rows);
    f("b", s.b);
    f("trans", s.trans);
  }
  static const ir::OpInfo& info();
};

struct Take {
  static constexpr std::string_view kFormat =
      "take $tile from $slot_tile{ rows $rows}{ cols $cols}{ $trans}";
  static constexpr std::string_view kDoc =
      "Loads a register tile from a slot tile of the slot got last. rows: the slot tile's first "
      "row. A slot tile "
      "of one row goes to a col tile in f32; cols: the slot tile's first column. trans: the slot "
      "tile's rows "
      "are "
      "the tile's columns; rows: the slot tile's first column then.";
  ir::Name tile;
  ir::Name slot_tile;
  ir::Expr rows;
  ir::Expr cols;
  Trans trans = Trans::No;
  static void fields(auto& s, auto&& f) {
    f("tile", s.tile);
    f("slot_tile", s.slot_tile);
    f("rows", s.rows);
    f("cols", s.cols);
    f("trans", s.trans);
  }
  static const ir::OpInfo& info();
};

struct Wait {
  static constexpr std::string_view kFormat = "wait $leaves{ for $acc}";
  static constexpr std::string_view kDoc =
      "Waits until at most so many matrix groups of this warp group run. for: the accumulator "
      "that is valid afterwards; the A registers of its product are free then.";
  ir::OptionalInt leaves;
  ir::Name acc;
  static void fields(auto& s, auto&& f) {
    f("leaves", s.leaves);
    f("acc", s.acc);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::matile
