// SPDX-License-Identifier: Apache-2.0
// Declarations that mean the same at every level: sizes, scalars, facts, the numerics contract.
// Sizes are the caller's (dim), fixed when compiling (static), the device's (machine) or computed
// from others (size).
#pragma once

#include "expr/bounds/bounds.h"
#include "ir/op.h"

namespace nautilus::ir {

// Whether a hint is an example of the program, or a size that the caller asked kernels for.
enum class HintKind : uint8_t { Example, Asked };
const std::vector<std::string_view>& words(HintKind);

struct Dim {
  static constexpr std::string_view kFormat = "dim $name{ hint $hint}{ $kind}";
  static constexpr std::string_view kDoc =
      "A symbolic size, any value from 0. The hint is used by commands when the caller gives no "
      "value. asked: kernels are chosen for this value; they are right for any other.";
  Name name;
  OptionalInt hint;
  HintKind kind = HintKind::Example;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("hint", s.hint);
    f("kind", s.kind);
  }
  static const OpInfo& info();
};

struct Static {
  static constexpr std::string_view kFormat = "static $name = $value";
  static constexpr std::string_view kDoc =
      "A size fixed when compiling. Expressions contain its value, not its name; the op records "
      "where the value came from.";
  Name name;
  OptionalInt value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("value", s.value);
  }
  static const OpInfo& info();
};

struct Machine {
  static constexpr std::string_view kFormat = "machine $name";
  static constexpr std::string_view kDoc =
      "A property of the device as a size: `sms` is the number of multiprocessors. Results do not "
      "depend on it.";
  Name name;
  static void fields(auto& s, auto&& f) { f("name", s.name); }
  static const OpInfo& info();
};

struct Size {
  static constexpr std::string_view kFormat = "size $name = $value";
  static constexpr std::string_view kDoc =
      "A size, 0 or more, computed for each call from sizes, scalars and the machine.";
  Name name;
  Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("value", s.value);
  }
  static const OpInfo& info();
};

struct Param {
  static constexpr std::string_view kFormat = "param $name : $dtype{ = $init}";
  static constexpr std::string_view kDoc =
      "A scalar handed over at run time. The default is an expression of sizes and earlier "
      "scalars, evaluated in fp64 and "
      "rounded once to the dtype.";
  Name name;
  DType dtype = DType::F32;
  Expr init;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("dtype", s.dtype);
    f("init", s.init);
  }
  static const OpInfo& info();
};

struct Fact {
  static constexpr std::string_view kFormat = "fact $condition";
  static constexpr std::string_view kDoc =
      "A condition over sizes and scalars that holds for every call. Proofs may use it; evaluation "
      "checks it.";
  Expr condition;
  static void fields(auto& s, auto&& f) { f("condition", s.condition); }
  static const OpInfo& info();
};

// How operands of contractions may be rounded. Licensed: to 16 bits that hold another operand.
// Exact: not at all. Bf16, Tf32: as licensed, and f32 operands to those formats, too.
enum class Rounding : uint8_t { Licensed, Exact, Bf16, Tf32 };
const std::vector<std::string_view>& words(Rounding);
// Relative error of an f32 operand that is rounded to nearest as the licence allows; 0 without one.
double operand_roundoff(Rounding rounding);

struct Numerics {
  static constexpr std::string_view kFormat = "numerics{ $rounding}{ rel $rel}{ abs $abs}";
  static constexpr std::string_view kDoc =
      "The numerics contract: `exact` forbids rounding an operand of a contraction to the other "
      "operand's storage dtype, and functions coarser than a few ulp; `bf16` and `tf32` license "
      "rounding f32 operands of contractions to these formats; rel "
      "and abs declare a tolerance, |got - want| <= abs + rel * |want|.";
  Rounding rounding = Rounding::Licensed;
  OptionalNumber rel;
  OptionalNumber abs;
  static void fields(auto& s, auto&& f) {
    f("rounding", s.rounding);
    f("rel", s.rel);
    f("abs", s.abs);
  }
  static const OpInfo& info();
};

struct Target {
  static constexpr std::string_view kFormat = "target $name";
  static constexpr std::string_view kDoc =
      "The machine that kernels are for (docs/targets.md); without it, sm_90a. Results do not "
      "depend on it.";
  Name name;
  static void fields(auto& s, auto&& f) { f("name", s.name); }
  static const OpInfo& info();
};

// Adds the names a declaration defines; false if the op is not a declaration.
bool declare_decl(const Op& op, expr::Scope& scope);

// Sizes and facts of a program, ready for proofs; axes are added by the caller.
expr::Facts facts_of(const Program& program, expr::ExprPool& pool);

Numerics numerics_of(const Program& program);

// Whether kernels may use functions that are coarser than a few ulp: true if every output is a
// float of at most 16 bits, which rounds by as much anyway, unless `numerics exact` forbids it
// (docs/language.md, section 8). Decided for the whole program, so that kernels and the oracle's
// bounds agree on it wherever a function is computed.
bool allows_coarse_functions(const Program& program, const std::vector<DType>& outputs);

}  // namespace nautilus::ir
