// SPDX-License-Identifier: Apache-2.0
// Work of a compute role on its registers, and between registers and memory.
#pragma once

#include "ir/op.h"

namespace nautilus::matile {

enum class Reuse : uint8_t { Once, Often };
const std::vector<std::string_view>& words(Reuse);

struct Set {
  static constexpr std::string_view kFormat = "set $target[$axes] = $value";
  static constexpr std::string_view kDoc =
      "Element by element: a register tile from register tiles, scalars, coordinates and "
      "global memory.";
  ir::Name target;
  ir::Axes axes;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("axes", s.axes);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Fold {
  static constexpr std::string_view kFormat = "fold $target[$axes] = $value";
  static constexpr std::string_view kDoc =
      "As set, with one reduction in the value of which each thread takes its own elements: "
      "the target holds one partial value per lane.";
  ir::Name target;
  ir::Axes axes;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("axes", s.axes);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Lanes {
  static constexpr std::string_view kFormat = "lanes $tile $reducer";
  static constexpr std::string_view kDoc =
      "Combines the partial values of the lanes that share an element; all of them get the "
      "result.";
  ir::Name tile;
  expr::Reducer reducer = expr::Reducer::Sum;
  static void fields(auto& s, auto&& f) {
    f("tile", s.tile);
    f("reducer", s.reducer);
  }
  static const ir::OpInfo& info();
};

struct Shares {
  static constexpr std::string_view kFormat = "shares $tile $reducer";
  static constexpr std::string_view kDoc =
      "The opposite of `lanes`: of a value that all lanes of an element hold, each keeps an equal "
      "share of a sum. Exact, their number is a power of two. For initial elements of sums that "
      "are carried as shares.";
  ir::Name tile;
  expr::Reducer reducer = expr::Reducer::Sum;
  static void fields(auto& s, auto&& f) {
    f("tile", s.tile);
    f("reducer", s.reducer);
  }
  static const ir::OpInfo& info();
};

struct Warps {
  static constexpr std::string_view kFormat = "warps $tile $reducer";
  static constexpr std::string_view kDoc =
      "Combines the partial values of the four warps of a group that share an element, through "
      "shared memory; all of them get the result. The lanes are combined before (`lanes`). All "
      "warps of the group must come here: not inside the `if` of a vote.";
  ir::Name tile;
  expr::Reducer reducer = expr::Reducer::Sum;
  static void fields(auto& s, auto&& f) {
    f("tile", s.tile);
    f("reducer", s.reducer);
  }
  static const ir::OpInfo& info();
};

struct Groups {
  static constexpr std::string_view kFormat = "groups $tile $reducer";
  static constexpr std::string_view kDoc =
      "Combines the values that the groups of a role have of a line tile without axes, through "
      "shared memory; all of them get the result. Lanes and warps are combined before (`lanes`, "
      "`warps`). All groups of the role must come here: not where groups may decide differently, "
      "nor in a role whose groups alternate tiles.";
  ir::Name tile;
  expr::Reducer reducer = expr::Reducer::Sum;
  static void fields(auto& s, auto&& f) {
    f("tile", s.tile);
    f("reducer", s.reducer);
  }
  static const ir::OpInfo& info();
};

struct Ctas {
  static constexpr std::string_view kFormat = "ctas $tile $reducer";
  static constexpr std::string_view kDoc =
      "Combines the values that the CTAs of a cluster have of a line tile without axes, each "
      "writing into the shared memory of all; all of them get the result. Lanes, warps and groups "
      "are combined before. All threads of all CTAs must come here: the kernel has one role, and "
      "nothing that differs by rank decides whether they do.";
  ir::Name tile;
  expr::Reducer reducer = expr::Reducer::Sum;
  static void fields(auto& s, auto&& f) {
    f("tile", s.tile);
    f("reducer", s.reducer);
  }
  static const ir::OpInfo& info();
};

struct Load {
  static constexpr std::string_view kFormat =
      "load $target[$axes] from $value{ when $condition}{ else $other}{ $reuse}";
  static constexpr std::string_view kDoc =
      "Elements of a tensor in global memory into a register tile of the same dtype; `other` (0 "
      "if not said) where the condition does not hold. Where a thread's registers are neighbours "
      "in memory it moves 16 bytes at a time; the plan then refuses tensors that are not aligned "
      "so. often: other CTAs read the same elements, the first level cache keeps them.";
  ir::Name target;
  ir::Axes axes;
  ir::Expr value;
  ir::Expr condition;
  ir::Expr other;
  Reuse reuse = Reuse::Once;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("axes", s.axes);
    f("value", s.value);
    f("condition", s.condition);
    f("other", s.other);
    f("reuse", s.reuse);
  }
  static const ir::OpInfo& info();
};

struct Prefetch {
  static constexpr std::string_view kFormat = "prefetch $value count $count{ when $condition}";
  static constexpr std::string_view kDoc =
      "Asks the second-level cache for so many elements of a tensor, from the first one of a row "
      "on. One thread of the group asks and nothing waits for it: what it changes is when a later "
      "load has its data. Whole 16 bytes are moved; the plan refuses tensors that are not aligned "
      "so.";
  ir::Expr value;
  ir::Expr count;
  ir::Expr condition;
  static void fields(auto& s, auto&& f) {
    f("value", s.value);
    f("count", s.count);
    f("condition", s.condition);
  }
  static const ir::OpInfo& info();
};

struct Forget {
  static constexpr std::string_view kFormat = "forget $tile";
  static constexpr std::string_view kDoc =
      "Values computed from the elements of a tile so far are not kept in registers: later ops "
      "compute them anew. A packed tile that is unpacked in each of several passes then occupies "
      "its own registers alone.";
  ir::Name tile;
  static void fields(auto& s, auto&& f) { f("tile", s.tile); }
  static const ir::OpInfo& info();
};

struct Vote {
  static constexpr std::string_view kFormat = "vote $name = $value";
  static constexpr std::string_view kDoc =
      "A condition that holds for any element of the tile in this warp; uniform over the "
      "warp.";
  ir::Name name;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Ticket {
  static constexpr std::string_view kFormat = "ticket $name = $counter[$index] of $count";
  static constexpr std::string_view kDoc =
      "Counts the CTAs that come here: true for the last of `count`. What the others have put "
      "before "
      "is then visible, and the counter is zero again. The counter is a scratch tensor of i32.";
  ir::Name name;
  ir::Name counter;
  ir::Expr index;
  ir::Expr count;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("counter", s.counter);
    f("index", s.index);
    f("count", s.count);
  }
  static const ir::OpInfo& info();
};

struct Store {
  static constexpr std::string_view kFormat = "store $map[$at] from $tile{ via $stage}";
  static constexpr std::string_view kDoc =
      "Stores a 16-bit register tile through a staging buffer: the copy engine writes the "
      "box.";
  ir::Name map;
  ir::Exprs at;
  ir::Name tile;
  ir::Name stage;
  static void fields(auto& s, auto&& f) {
    f("map", s.map);
    f("at", s.at);
    f("tile", s.tile);
    f("stage", s.stage);
  }
  static const ir::OpInfo& info();
};

struct Put {
  static constexpr std::string_view kFormat =
      "put{ $axes} : $target[$indices] = $value{ when $condition}";
  static constexpr std::string_view kDoc =
      "Writes elements of a tensor directly, one lane per element; 16 bytes at a time where a "
      "thread's registers are neighbours in memory, see load.";
  ir::Axes axes;
  ir::Name target;
  ir::Exprs indices;
  ir::Expr value;
  ir::Expr condition;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("target", s.target);
    f("indices", s.indices);
    f("value", s.value);
    f("condition", s.condition);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::matile
