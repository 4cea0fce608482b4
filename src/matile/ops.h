// SPDX-License-Identifier: Apache-2.0
// Level 3, MA-tile: placed tiles, asynchronous work and roles; and the plan, which is the host's
// part. What a kernel does is decided here; emission adds nothing.
//
//   matile.program @gemm
//     tensor A : bf16[M, K] input
//     map Am[k < K, m < M] = A[m, k] box 64, 128
//     kernel gemm
//       ring AB slots 4
//         part a : bf16[128, 64]
//         part b : bf16[256, 64]
//       role load warp 0 regs 24
//         ...
//       role compute groups 2 index w regs 240
//         ...
//     launch gemm grid min(tiles, sms)
//
// Barriers are never written: rings, turns, stages and waits imply them (docs/matile.md). A ring's
// cursor stands on the slot that the role got last; `release` gives back the oldest slot it holds.
#pragma once

#include <string>

#include "diag/diagnostic.h"
#include "ir/decl.h"
#include "ir/op.h"
#include "matile/ops_nest.h"
#include "matile/ops_points.h"
#include "matile/ops_registers.h"

namespace nautilus::matile {

using ir::Dim;
using ir::Fact;
using ir::Numerics;
using ir::Param;
using ir::Static;

enum class TensorRole : uint8_t { Input, Output, Scratch, Temp };
const std::vector<std::string_view>& words(TensorRole);
// The first value is the default and is not printed.
enum class MapSwizzle : uint8_t { B128, B64, B32, None };
const std::vector<std::string_view>& words(MapSwizzle);
enum class TileSource : uint8_t { Static, Dynamic };
const std::vector<std::string_view>& words(TileSource);
enum class RoleUnit : uint8_t { Warp, Groups };
const std::vector<std::string_view>& words(RoleUnit);
// Unset: before layouts are spread (nest form).
enum class Spread : uint8_t { Unset, Acc, Row, Col, Line };
const std::vector<std::string_view>& words(Spread);
enum class Direction : uint8_t { Up, Down };
const std::vector<std::string_view>& words(Direction);
enum class DotMode : uint8_t { Init, Add };
const std::vector<std::string_view>& words(DotMode);
enum class Trans : uint8_t { No, Yes };
const std::vector<std::string_view>& words(Trans);
enum class Reach : uint8_t { Own, Multicast };
const std::vector<std::string_view>& words(Reach);
// How far a kernel is from the text that is emitted (docs/matile.md, nest form). nest: one role
// that fetches what it needs; roles: roles and rings, but no waits, releases and turns yet.
enum class KernelForm : uint8_t { Final, Nest, Roles };
const std::vector<std::string_view>& words(KernelForm);

struct Oracle {
  static constexpr std::string_view kFormat = "oracle $path";
  static constexpr std::string_view kDoc =
      "The program in the math language that says what this one computes; the path is "
      "relative to this file.";
  std::string path;
  static void fields(auto& s, auto&& f) { f("path", s.path); }
  static const ir::OpInfo& info();
};

struct Tensor {
  static constexpr std::string_view kFormat = "tensor $name : $type $role";
  static constexpr std::string_view kDoc =
      "A tensor in global memory: given (input), filled (output), scratch of the plan, which is "
      "zero before the first launch and which kernels leave zero, or temp: memory of the plan "
      "that passes values from one kernel of a launch to a later one, with no promised contents.";
  ir::Name name;
  ir::TensorType type;
  TensorRole role = TensorRole::Input;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("role", s.role);
  }
  static const ir::OpInfo& info();
};

struct Machine {
  static constexpr std::string_view kFormat = "machine $name";
  static constexpr std::string_view kDoc =
      "A property of the device as a size: `sms` is the number of multiprocessors.";
  ir::Name name;
  static void fields(auto& s, auto&& f) { f("name", s.name); }
  static const ir::OpInfo& info();
};

struct Let {
  static constexpr std::string_view kFormat = "let $name = $value";
  static constexpr std::string_view kDoc =
      "A scalar. Outside of kernels it is evaluated by the host for each launch; inside it is "
      "uniform over the role's warps.";
  ir::Name name;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Map {
  static constexpr std::string_view kFormat =
      "map $name[$axes] = $value box $box{ swizzle $swizzle}{ promote $promote}";
  static constexpr std::string_view kDoc =
      "A strided view of a tensor for the copy engine, innermost axis first: the element it "
      "names for each point of its axes, and the box one copy moves. Points outside the "
      "extents read 0 and are not written.";
  ir::Name name;
  ir::Axes axes;
  ir::Expr value;
  ir::Exprs box;
  MapSwizzle swizzle = MapSwizzle::B128;
  ir::OptionalInt promote;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("axes", s.axes);
    f("value", s.value);
    f("box", s.box);
    f("swizzle", s.swizzle);
    f("promote", s.promote);
  }
  static const ir::OpInfo& info();
};

struct Kernel {
  static constexpr std::string_view kFormat =
      "kernel $name{ $form}{ resident $resident}{ cluster $cluster}{ rank $rank}$body";
  static constexpr std::string_view kDoc =
      "A kernel: declarations of its shared resources, then its roles. nest, roles: forms that "
      "passes finish before it can be emitted. resident n: n of its CTAs "
      "share a multiprocessor, so each gets that part of the registers and of the shared memory. "
      "cluster n: n neighbouring CTAs run together, walk the same tiles and may multicast copies "
      "to each other; `rank` tells them apart.";
  ir::Name name;
  KernelForm form = KernelForm::Final;
  ir::OptionalInt resident = {};
  ir::OptionalInt cluster = {};
  ir::Name rank = {};
  ir::Block body = {};
  int ctas() const { return static_cast<int>(cluster.value_or(1)); }
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("form", s.form);
    f("resident", s.resident);
    f("cluster", s.cluster);
    f("rank", s.rank);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Launch {
  static constexpr std::string_view kFormat = "launch $kernel grid $grid{ else $other}";
  static constexpr std::string_view kDoc =
      "Runs a kernel on so many CTAs, rounded up to whole clusters. Launches run in the order of "
      "the text. else: the kernel that runs instead if a tensor is not aligned as the first one "
      "needs it.";
  ir::Name kernel;
  ir::Expr grid;
  ir::Name other = {};
  static void fields(auto& s, auto&& f) {
    f("kernel", s.kernel);
    f("grid", s.grid);
    f("other", s.other);
  }
  static const ir::OpInfo& info();
};

struct Cta {
  static constexpr std::string_view kFormat = "cta $index of $count";
  static constexpr std::string_view kDoc =
      "Names the number of this CTA and how many there are. With static tiles a CTA takes tile "
      "`index` first, and tile t + count after tile t. Of a kernel with clusters: the number of "
      "the cluster, and how many clusters there are.";
  ir::Name index;
  ir::Name count;
  static void fields(auto& s, auto&& f) {
    f("index", s.index);
    f("count", s.count);
  }
  static const ir::OpInfo& info();
};

struct Tiles {
  static constexpr std::string_view kFormat = "tiles $name < $count $source{ counter $counter}";
  static constexpr std::string_view kDoc =
      "The tiles of the persistent loop. static: a CTA takes every grid-th tile. dynamic: the "
      "next tile comes from an atomic counter, one tile ahead; the role that walks the tiles "
      "first fetches and publishes it.";
  ir::Name name;
  ir::Expr count;
  TileSource source = TileSource::Static;
  ir::Name counter;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("count", s.count);
    f("source", s.source);
    f("counter", s.counter);
  }
  static const ir::OpInfo& info();
};

struct Ring {
  static constexpr std::string_view kFormat = "ring $name slots $slots{ per $per}$body";
  static constexpr std::string_view kDoc =
      "A ring of buffers between the role that fills it and the roles that read it. A slot "
      "holds the parts of the block; `per r`: each group of role r has its own.";
  ir::Name name;
  ir::OptionalInt slots;
  ir::Name per;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("slots", s.slots);
    f("per", s.per);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Part {
  static constexpr std::string_view kFormat = "part $name : $type{ swizzle $swizzle}";
  static constexpr std::string_view kDoc = "A tile of a slot, in panels.";
  ir::Name name;
  ir::TensorType type;
  MapSwizzle swizzle = MapSwizzle::B128;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("swizzle", s.swizzle);
  }
  static const ir::OpInfo& info();
};

struct Turn {
  static constexpr std::string_view kFormat = "turn $name over $role";
  static constexpr std::string_view kDoc =
      "An order among the groups of a role: each enters after the one before it has left.";
  ir::Name name;
  ir::Name role;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("role", s.role);
  }
  static const ir::OpInfo& info();
};

struct Stage {
  static constexpr std::string_view kFormat =
      "stage $name buffers $buffers per $role : $type{ on $ring}";
  static constexpr std::string_view kDoc =
      "Output staging of each group of a role: buffers in shared memory from which the copy engine "
      "stores. on r: the slot of the group's ring r serves as the buffer; the ring is released "
      "after the store.";
  ir::Name name;
  ir::OptionalInt buffers;
  ir::Name role;
  ir::TensorType type;
  ir::Name ring;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("buffers", s.buffers);
    f("role", s.role);
    f("type", s.type);
    f("ring", s.ring);
  }
  static const ir::OpInfo& info();
};

struct Role {
  static constexpr std::string_view kFormat =
      "role $name $unit $count{ index $index}{ regs $regs}$body";
  static constexpr std::string_view kDoc =
      "Who runs a block: `warp n` is one thread of warp n of the first warp group; `groups n` "
      "are n warp groups, told apart by the index.";
  ir::Name name;
  RoleUnit unit = RoleUnit::Warp;
  ir::OptionalInt count;
  ir::Name index;
  ir::OptionalInt regs;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("unit", s.unit);
    f("count", s.count);
    f("index", s.index);
    f("regs", s.regs);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Tile {
  static constexpr std::string_view kFormat = "tile $name : $type{ $spread}{ by $by}";
  static constexpr std::string_view kDoc =
      "A tile in registers. acc: the accumulator of the matrix unit, and its A operand; row, "
      "col: one value per row or column of such a tile. line: one axis over the threads of the "
      "group, each of which holds `by` neighbours at a time (as many as 16 bytes hold, if not "
      "said); without an axis, one value that every thread has.";
  ir::Name name;
  ir::TensorType type;
  Spread spread = Spread::Unset;
  ir::OptionalInt by;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("spread", s.spread);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Each {
  static constexpr std::string_view kFormat = "each $var in $tiles{ alternate $alternate}$body";
  static constexpr std::string_view kDoc =
      "The persistent loop of a role over the kernel's tiles. alternate n: group i of the "
      "role takes the tiles i, i+n, i+2n, ... of the CTA.";
  ir::Name var;
  ir::Name tiles;
  ir::OptionalInt alternate;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("var", s.var);
    f("tiles", s.tiles);
    f("alternate", s.alternate);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Loop {
  static constexpr std::string_view kFormat = "loop $var from $from $direction $to$body";
  static constexpr std::string_view kDoc =
      "A counted loop. up: from <= var < to. down: from >= var >= to.";
  ir::Name var;
  ir::Expr from;
  Direction direction = Direction::Up;
  ir::Expr to;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("var", s.var);
    f("from", s.from);
    f("direction", s.direction);
    f("to", s.to);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Unroll {
  static constexpr std::string_view kFormat = "unroll $axes$body";
  static constexpr std::string_view kDoc =
      "A loop whose variable is a constant in each copy of the block, so that it may pick "
      "registers.";
  ir::Axes axes;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct If {
  static constexpr std::string_view kFormat = "if $condition$body";
  static constexpr std::string_view kDoc =
      "Runs the block where a uniform condition holds: a scalar of the role, or a vote (then "
      "only register work may stand inside).";
  ir::Expr condition;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("condition", s.condition);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

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
  static constexpr std::string_view kFormat = "copy $part from $map[$at]{ panel $panel}{ $reach}";
  static constexpr std::string_view kDoc =
      "One box of a map into a part of the slot being filled. panel: into this panel of the part, "
      "of which the box is as wide as one; for rows whose length is no multiple of a panel. "
      "multicast: "
      "the box is this CTA's share of the part, by rank, and every CTA of the cluster gets all "
      "shares; `at` is where the whole part begins, the same in all CTAs.";
  ir::Name part;
  ir::Name map;
  ir::Exprs at;
  ir::OptionalInt panel;
  Reach reach = Reach::Own;
  static void fields(auto& s, auto&& f) {
    f("part", s.part);
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
      "Waits until the ring's next slot is full. Its parts are then the operands of `dot`.";
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
  static constexpr std::string_view kFormat = "dot $acc $mode $a{ rows $rows}, $b{ $trans}";
  static constexpr std::string_view kDoc =
      "Starts a matrix product: acc (+)= a . b as one asynchronous group. a is a part of a "
      "slot or a register tile, b a part; `trans`: b is stored as columns by depth. rows: the "
      "first row of a.";
  ir::Name acc;
  DotMode mode = DotMode::Init;
  ir::Name a;
  ir::Expr rows;
  ir::Name b;
  Trans trans = Trans::No;
  static void fields(auto& s, auto&& f) {
    f("acc", s.acc);
    f("mode", s.mode);
    f("a", s.a);
    f("rows", s.rows);
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
      "are parts of slots held.";
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
  static constexpr std::string_view kFormat = "take $tile from $part{ rows $rows}{ cols $cols}";
  static constexpr std::string_view kDoc =
      "Loads a register tile from a part of the slot got last. rows: the part's first row. A part "
      "of one row goes to a col tile in f32; cols: the part's first column.";
  ir::Name tile;
  ir::Name part;
  ir::Expr rows;
  ir::Expr cols;
  static void fields(auto& s, auto&& f) {
    f("tile", s.tile);
    f("part", s.part);
    f("rows", s.rows);
    f("cols", s.cols);
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

enum class Kind : uint8_t {
#define OP(name) name,
#include "matile/ops.def"
#undef OP
};
Kind kind(const ir::Op& op);

const ir::Level& level();
std::map<std::string, ir::TensorType> tensors(const ir::Program& program, TensorRole role);

bool verify(const ir::Program& program, diag::Sink& sink);

// False (and reported) if a kernel is in a form that passes have to finish first.
bool verify_final(const ir::Program& program, diag::Sink& sink);

}  // namespace nautilus::matile
