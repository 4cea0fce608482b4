// SPDX-License-Identifier: Apache-2.0
// Level 2, VR-tile: tiles as values. This level decides what is computed; level MA-tile decides
// where tiles are stored.
//
//   vrtile.program @gemm
//     tensor A : bf16[M, K] input
//     par m < (M + 127) / 128, n < (N + 255) / 256 grid
//       par w < 2 group
//         set c_init[i < 64, j < 256] = 0.0
//         for k from 0 up (K + 63) / 64
//           carry c : f32[64, 256] from c_init next c_next
//           load a[i < 64, q < 64] = A[128 * m + 64 * w + i, 64 * k + q] when ... else bf16(0.0)
//           load b[j < 256, q < 64] = B[256 * n + j, 64 * k + q] when ... else bf16(0.0)
//           dot c_next : f32[64, 256] = a, b trans onto c
//         store [i < 64, j < 256] C[128 * m + 64 * w + i, 256 * n + j] = bf16(c[i, j]) when ...
//
// A tile is a name with a static shape and one definition; a value that one iteration passes to the
// next is a `carry`. Sharing between warp groups is implicit: a tile that does not depend on the
// group's index is the same in all of them.
#pragma once

#include <map>
#include <string>

#include "decision/decisions.h"
#include "diag/diagnostic.h"
#include "ir/decl.h"
#include "ir/op.h"

namespace nautilus::vrtile {

using decision::Decisions;
using ir::Dim;
using ir::Fact;
using ir::Machine;
using ir::Numerics;
using ir::Param;
using ir::Size;
using ir::Static;
using ir::Target;

enum class TensorRole : uint8_t { Input, Output, Temp };
const std::vector<std::string_view>& words(TensorRole);
enum class ParKind : uint8_t { Grid, Group };
const std::vector<std::string_view>& words(ParKind);
enum class Direction : uint8_t { Up, Down };
const std::vector<std::string_view>& words(Direction);
// The first value is the default and is not printed.
enum class Trans : uint8_t { No, Yes };
const std::vector<std::string_view>& words(Trans);

struct Tensor {
  static constexpr std::string_view kFormat = "tensor $name : $type $role";
  static constexpr std::string_view kDoc =
      "A tensor in global memory: given (input), filled (output), or passed from one kernel to a "
      "later one (temp).";
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

struct Let {
  static constexpr std::string_view kFormat = "let $name = $value";
  static constexpr std::string_view kDoc =
      "A scalar of sizes, scalars and the variables of the loops around it.";
  ir::Name name;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Par {
  static constexpr std::string_view kFormat = "par $axes $kind$body";
  static constexpr std::string_view kDoc =
      "Independent copies of the block. grid: the tiles of one kernel, anywhere on the device. "
      "group: the warp groups of one tile; extents are constants.";
  ir::Axes axes;
  ParKind kind = ParKind::Grid;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("kind", s.kind);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct For {
  static constexpr std::string_view kFormat = "for $var from $from $direction $to$body";
  static constexpr std::string_view kDoc =
      "Runs its block for from <= var < to, counting up, or for from >= var >= to, counting down. "
      "The block starts with a `carry` for every value that one iteration hands to the next.";
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

struct Carry {
  static constexpr std::string_view kFormat = "carry $name : $type from $init next $next";
  static constexpr std::string_view kDoc =
      "A value carried by the loop it heads: the tile `init` in the first iteration, the tile "
      "`next` of the iteration before in later ones. After the loop the name stands for the "
      "`next` of the last iteration, or for `init` if there was none. All carries of a loop "
      "change at once.";
  ir::Name name;
  ir::TensorType type;
  ir::Name init;
  ir::Name next;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("init", s.init);
    f("next", s.next);
  }
  static const ir::OpInfo& info();
};

struct Load {
  static constexpr std::string_view kFormat =
      "load $name[$axes] = $value{ when $condition}{ else $other}";
  static constexpr std::string_view kDoc =
      "A tile from elements of a tensor, in the tensor's dtype; `other` where the condition does "
      "not hold, and there nothing is read. Indices and condition may read tiles.";
  ir::Name name;
  ir::Axes axes;
  ir::Expr value;
  ir::Expr condition;
  ir::Expr other;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("axes", s.axes);
    f("value", s.value);
    f("condition", s.condition);
    f("other", s.other);
  }
  static const ir::OpInfo& info();
};

struct Set {
  static constexpr std::string_view kFormat = "set $name[$axes] = $value";
  static constexpr std::string_view kDoc =
      "A tile element by element, from tiles, scalars and coordinates.";
  ir::Name name;
  ir::Axes axes;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("axes", s.axes);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Reduce {
  static constexpr std::string_view kFormat = "reduce $name[$axes] = $value";
  static constexpr std::string_view kDoc =
      "A tile each element of which is one reduction, with constant extents, of an expression as "
      "in `set`. A reduction by groups has the group in its axes: `reduce up[g < 4] = any[x < 16] "
      "z[16 * g + x]`.";
  ir::Name name;
  ir::Axes axes;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("axes", s.axes);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Dot {
  static constexpr std::string_view kFormat = "dot $name : $type = $a, $b{ $trans}{ onto $acc}";
  static constexpr std::string_view kDoc =
      "The matrix product of two tiles, added to the tile `acc` or to 0: operands are converted to "
      "the type's dtype, then multiplied and summed. a is rows by depth; b is depth by columns, "
      "or, `trans`, columns by depth.";
  ir::Name name;
  ir::TensorType type;
  ir::Name a;
  ir::Name b;
  Trans trans = Trans::No;
  ir::Name acc;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("a", s.a);
    f("b", s.b);
    f("trans", s.trans);
    f("acc", s.acc);
  }
  static const ir::OpInfo& info();
};

struct Store {
  static constexpr std::string_view kFormat =
      "store [$axes] $target[$indices] = $value{ when $condition}";
  static constexpr std::string_view kDoc =
      "Writes elements of a tensor, one for every point of the axes at which the condition holds; "
      "the value is an expression as in `set`.";
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

enum class Kind : uint8_t {
#define OP(name) name,
#include "vrtile/ops.def"
#undef OP
};
Kind kind(const ir::Op& op);

const ir::Level& level();
std::map<std::string, ir::TensorType> tensors(const ir::Program& program, TensorRole role);

// The tile that an op defines: load, set, reduce, dot, carry; no name for other ops.
ir::Name defined(const ir::Op& op);
ir::TensorType type_of(const ir::Op& op);

bool verify(const ir::Program& program, diag::Sink& sink);

}  // namespace nautilus::vrtile
