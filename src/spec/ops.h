// SPDX-License-Identifier: Apache-2.0
// Level 0, spec: equations over whole tensors.
//
//   spec.program @matmul
//     dim M hint 64
//     input A : bf16[M, 128]
//     let C[i < M, j < 64] : f32 = sum[k < 128] f32(A[i, k]) * f32(B[k, j])
//     output C
//
// Every extent is explicit, every conversion a cast, every function expanded. No loops and no
// tiles. The only order of evaluation is that of a scan: its equations read each other at the
// previous step:
//
//     state H : f32[N, T] along 1
//     let H[i < N, t < T] : f32 = a[i, t] * where(t >= 1, H[i, t - 1], 0.0) + b[i, t]
#pragma once

#include <optional>

#include "decision/decisions.h"
#include "diag/diagnostic.h"
#include "ir/decl.h"
#include "ir/op.h"

namespace nautilus::spec {

using decision::Decisions;
using ir::Dim;
using ir::Fact;
using ir::Numerics;
using ir::Param;
using ir::Static;
using ir::Target;

struct Input {
  static constexpr std::string_view kFormat = "input $name : $type";
  static constexpr std::string_view kDoc =
      "A tensor given by the caller; its dimensions are expressions of sizes.";
  ir::Name name;
  ir::TensorType type;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
  }
  static const ir::OpInfo& info();
};

struct Let {
  static constexpr std::string_view kFormat = "let $name[$axes] : $dtype = $body";
  static constexpr std::string_view kDoc =
      "Defines every element of a tensor. The body may read inputs and tensors defined before, and "
      "may contain reductions; "
      "its dtype is the tensor's. A read under the untaken branch of `where` does not happen.";
  ir::Name name;
  ir::Axes axes;
  ir::DType dtype = ir::DType::F32;
  ir::Expr body;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("axes", s.axes);
    f("dtype", s.dtype);
    f("body", s.body);
  }
  static const ir::OpInfo& info();

  ir::TensorType type() const;
};

// Whether the previous step is at the index below or above.
enum class Direction : uint8_t { Up, Down };
const std::vector<std::string_view>& words(Direction);

struct State {
  static constexpr std::string_view kFormat = "state $name : $type along $dimension{ $direction}";
  static constexpr std::string_view kDoc =
      "A tensor that equations read before the one that defines it, itself among them: at the step "
      "before along the dimension (counted from 0), one below, or one above with `down`. Equations "
      "that need each other so are a scan (spec/scans.h).";
  ir::Name name;
  ir::TensorType type;
  ir::OptionalInt dimension;
  Direction direction = Direction::Up;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("dimension", s.dimension);
    f("direction", s.direction);
  }
  static const ir::OpInfo& info();

  size_t along() const { return static_cast<size_t>(dimension.value_or(0)); }
};

struct Output {
  static constexpr std::string_view kFormat = "output $name";
  static constexpr std::string_view kDoc = "Hands a defined tensor to the caller.";
  ir::Name name;
  static void fields(auto& s, auto&& f) { f("name", s.name); }
  static const ir::OpInfo& info();
};

enum class Kind : uint8_t {
#define OP(name) name,
#include "spec/ops.def"
#undef OP
};
Kind kind(const ir::Op& op);

const ir::Level& level();

// Types of all tensors of a program, by name.
std::map<std::string, ir::TensorType> tensor_types(const ir::Program& program);
std::vector<ir::Name> outputs(const ir::Program& program);
std::vector<expr::DType> output_dtypes(const ir::Program& program);

// Reports what breaks the rules of the level; true if nothing does.
bool verify(const ir::Program& program, diag::Sink& sink);

}  // namespace nautilus::spec
