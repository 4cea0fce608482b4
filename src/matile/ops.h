// SPDX-License-Identifier: Apache-2.0
// Level 3, MA-tile: placed tiles, asynchronous work and roles; and the plan, which is the host's
// share. This level decides everything that a kernel does; emission adds nothing.
//
//   matile.program @gemm
//     tensor A : bf16[M, K] input
//     map Am[k < K, m < M] = A[m, k] box 64, 128
//     kernel gemm
//       ring AB slots 4
//         slot_tile a : bf16[128, 64]
//         slot_tile b : bf16[256, 64]
//       role load warp 0 regs 24
//         ...
//       role compute groups 2 index w regs 240
//         ...
//     launch gemm grid min(tiles, sms)
//
// Barriers are never written: rings, turns, stages and waits imply them (docs/matile.md). A ring's
// cursor is at the slot that the role got last; `release` gives back the oldest slot that the role
// holds.
//
// This header has the declarations of a kernel and the control flow of its roles. The plan, the
// work of roles and the other forms of kernels have headers of their own.
#pragma once

#include <string>

#include "decision/decisions.h"
#include "diag/diagnostic.h"
#include "ir/decl.h"
#include "ir/op.h"
#include "matile/ops_nest.h"
#include "matile/ops_plan.h"
#include "matile/ops_points.h"
#include "matile/ops_registers.h"
#include "matile/ops_transfers.h"

namespace nautilus::matile {

using decision::Decisions;
using ir::Dim;
using ir::Fact;
using ir::Machine;
using ir::Numerics;
using ir::Param;
using ir::Static;
using ir::Target;

enum class TileSource : uint8_t { Static, Dynamic };
const std::vector<std::string_view>& words(TileSource);
enum class RoleUnit : uint8_t { Warp, Groups };
const std::vector<std::string_view>& words(RoleUnit);
// Unset: before layouts are spread (nest form).
enum class Spread : uint8_t { Unset, Acc, Row, Col, RowVector, Own };
const std::vector<std::string_view>& words(Spread);
enum class Direction : uint8_t { Up, Down };
const std::vector<std::string_view>& words(Direction);

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
      "holds the slot tiles of the block; `per r`: each group of role r has its own.";
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

struct SlotTile {
  static constexpr std::string_view kFormat = "slot_tile $name : $type{ swizzle $swizzle}";
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
  static constexpr std::string_view kFormat =
      "tile $name : $type{ $spread}{ by $by}{ lanes $lanes}";
  static constexpr std::string_view kDoc =
      "A tile in registers. acc: the accumulator of the matrix unit, and its A operand; row, "
      "col: one value per row or column of such a tile. line: one axis over the threads of the "
      "group, each of which holds `by` neighbours at a time (as many as 16 bytes hold, if not "
      "said); without an axis, one value that every thread has. lanes n: over n lanes of a warp "
      "(1 to 32, a power of 2); all other n lanes have such a tile of their own. own: a number of "
      "each thread for "
      "itself, until `lanes` and `warps` put them together.";
  ir::Name name;
  ir::TensorType type;
  Spread spread = Spread::Unset;
  ir::OptionalInt by;
  ir::OptionalInt lanes{};
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("spread", s.spread);
    f("by", s.by);
    f("lanes", s.lanes);
  }
  static const ir::OpInfo& info();
};

struct Each {
  static constexpr std::string_view kFormat =
      "each $var in $tiles{ alternate $alternate}{ lanes $lanes}$body";
  static constexpr std::string_view kDoc =
      "The persistent loop of a role over the kernel's tiles. alternate n: group i of the "
      "role takes the tiles i, i+n, i+2n, ... of the CTA. lanes n: each n lanes of a warp have a "
      "tile of their own, those of a CTA beside each other; the last CTA counts on beyond the "
      "tiles, and the body asks whether there is one.";
  ir::Name var;
  ir::Name tiles;
  ir::OptionalInt alternate;
  ir::Block body;
  ir::OptionalInt lanes{};
  static void fields(auto& s, auto&& f) {
    f("var", s.var);
    f("tiles", s.tiles);
    f("alternate", s.alternate);
    f("lanes", s.lanes);
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

enum class Kind : uint8_t {
#define OP(name) name,
#include "matile/ops.def"
#undef OP
};
Kind kind(const ir::Op& op);

const ir::Level& level();
std::map<std::string, ir::TensorType> tensors(const ir::Program& program, TensorRole role);
std::vector<expr::DType> output_dtypes(const ir::Program& program);

bool verify(const ir::Program& program, diag::Sink& sink);

// False (and reported) if a kernel is in a form that passes have to finish first.
bool verify_final(const ir::Program& program, diag::Sink& sink);

}  // namespace nautilus::matile
