// SPDX-License-Identifier: Apache-2.0
// Level 1, scalar: loops over scalars and buffers. Scheduling happens here.
//
//   scalar.program @matmul
//     dim M hint 64
//     buffer A : bf16[M, 128] input
//     buffer C : f32[M, 64] output
//     for i < M, j < 64 map
//       init C[i, j] = 0.0
//       for k < 128 reduce
//         update C[i, j] sum f32(A[i, k]) * f32(B[k, j])
//
// A reduction is a pair: an `init` and, inside its reduce loops, an `update` with the reducer.
// Keeping the pair explicit makes empty reductions, initial elements and later partial reductions
// ordinary programs (docs/decisions/0003).
//
// A scheduled nest has more structure, and stays an ordinary program: `for ... grid` are the tiles
// of a kernel, `for ... group` the warp groups of a tile, `loop` the steps that run one after the
// other and carry values in local buffers, and the innermost loops, of constant extents, are one
// tile op each.
//
//     buffer c : f32[64, 256] local
//     for m < (M + 127) / 128, n < (N + 255) / 256 grid
//       for w < 2 group
//         for i < 64, j < 256 map
//           init c[i, j] = 0.0
//         loop k from 0 up (K + 63) / 64
//           for i < 64, j < 256 map
//             for q < 64 reduce
//               update c[i, j] sum ...
#pragma once

#include "decision/decisions.h"
#include "diag/diagnostic.h"
#include "ir/decl.h"
#include "ir/op.h"

namespace nautilus::scalar {

using decision::Decisions;
using decision::Kernel;
using ir::Dim;
using ir::Fact;
using ir::Machine;
using ir::Numerics;
using ir::Param;
using ir::Size;
using ir::Static;
using ir::Target;

enum class Role : uint8_t { Input, Output, Temp, Local };
const std::vector<std::string_view>& words(Role);

struct Buffer {
  static constexpr std::string_view kFormat = "buffer $name : $type $role";
  static constexpr std::string_view kDoc =
      "Storage for a tensor: given by the caller (input), handed to the caller (output) or neither "
      "(temp); a local buffer belongs to one iteration of the grid loop around its uses, and "
      "nothing is in it when the iteration begins.";
  ir::Name name;
  ir::TensorType type;
  Role role = Role::Temp;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("role", s.role);
  }
  static const ir::OpInfo& info();
};

enum class LoopKind : uint8_t { Map, Reduce, Grid, Group };
const std::vector<std::string_view>& words(LoopKind);
// Where the parts of a grid loop are combined. The first value is the default and is not printed.
enum class Combine : uint8_t { Kernel, Last };
const std::vector<std::string_view>& words(Combine);

struct For {
  static constexpr std::string_view kFormat = "for $axes $kind{ combine $combine}$body";
  static constexpr std::string_view kDoc =
      "Runs its body for every point of the axes, the last axis fastest. The iterations of a map "
      "loop are independent; those "
      "of a reduce loop meet only in `update`s, so they may be reordered where the reducer allows "
      "it. A grid loop is a map loop over the tiles of a kernel, a group loop one over the warp "
      "groups of a tile. combine last: the last axis numbers parts; the reductions over parts that "
      "follow are computed by the tile that comes last, not by a kernel of their own. What else "
      "was decided about a kernel stands in the `decisions` of its grid loop.";
  ir::Axes axes;
  LoopKind kind = LoopKind::Map;
  ir::Block body;
  Combine combine = Combine::Kernel;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("kind", s.kind);
    f("combine", s.combine);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

enum class Direction : uint8_t { Up, Down };
const std::vector<std::string_view>& words(Direction);

struct Loop {
  static constexpr std::string_view kFormat = "loop $var from $from $direction $to$body";
  static constexpr std::string_view kDoc =
      "Runs its body for from <= var < to, counting up, or for from >= var >= to, counting down. "
      "The iterations run one after the other and may read what earlier ones wrote.";
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

struct If {
  static constexpr std::string_view kFormat = "if $condition$body";
  static constexpr std::string_view kDoc = "Runs its body where the condition holds.";
  ir::Expr condition;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("condition", s.condition);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Store {
  static constexpr std::string_view kFormat = "store $target[$indices] = $value";
  static constexpr std::string_view kDoc = "Writes one element. The value has the buffer's dtype.";
  ir::Name target;
  ir::Exprs indices;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Init {
  static constexpr std::string_view kFormat = "init $target[$indices] = $value";
  static constexpr std::string_view kDoc =
      "Starts a reduction: writes the reducer's identity or the reduction's initial element.";
  ir::Name target;
  ir::Exprs indices;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Update {
  static constexpr std::string_view kFormat = "update $target[$indices] $reducer $value";
  static constexpr std::string_view kDoc =
      "Combines one element with a value by the reducer (sum, prod, max, min, any, all). Stands "
      "inside a reduce loop.";
  ir::Name target;
  ir::Exprs indices;
  expr::Reducer reducer = expr::Reducer::Sum;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("reducer", s.reducer);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct UpdateArg {
  static constexpr std::string_view kFormat =
      "update_arg $target[$indices] best $best $reducer $value at $position";
  static constexpr std::string_view kDoc =
      "argmax or argmin: if the value beats the element of `best`, or the target is still -1, both "
      "buffers take the new value "
      "and position. NaN never does; the first of equal values stays.";
  ir::Name target;
  ir::Exprs indices;
  ir::Name best;
  expr::Reducer reducer = expr::Reducer::ArgMax;
  ir::Expr value;
  ir::Expr position;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("best", s.best);
    f("reducer", s.reducer);
    f("value", s.value);
    f("position", s.position);
  }
  static const ir::OpInfo& info();
};

struct Scatter {
  static constexpr std::string_view kFormat =
      "scatter $target[$indices] $reducer $value{ when $condition}";
  static constexpr std::string_view kDoc =
      "Combines one element with a value by the reducer (sum, max, min, any, all), where the "
      "condition holds. The element may be any: iterations of a map loop meet in it, so their "
      "order "
      "is free, and nothing else of the loop reads the target.";
  ir::Name target;
  ir::Exprs indices;
  expr::Reducer reducer = expr::Reducer::Sum;
  ir::Expr value;
  ir::Expr condition = {};
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("reducer", s.reducer);
    f("value", s.value);
    f("condition", s.condition);
  }
  static const ir::OpInfo& info();
};

enum class Kind : uint8_t {
#define OP(name) name,
#include "scalar/ops.def"
#undef OP
};
Kind kind(const ir::Op& op);

const ir::Level& level();
std::map<std::string, ir::TensorType> buffers(const ir::Program& program, Role role);

bool verify(const ir::Program& program, diag::Sink& sink);

}  // namespace nautilus::scalar
