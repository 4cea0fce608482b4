// SPDX-License-Identifier: Apache-2.0
// Ops of the plan, the host's part of a program: tensors, their maps, kernels and launches.
#pragma once

#include <string>

#include "decision/launch_lines.h"
#include "ir/op.h"

namespace nautilus::matile {

enum class TensorRole : uint8_t { Input, Output, Scratch, Temp };
const std::vector<std::string_view>& words(TensorRole);
// The first value is the default and is not printed.
enum class MapSwizzle : uint8_t { B128, B64, B32, None };
const std::vector<std::string_view>& words(MapSwizzle);
// How far a kernel is from the text that is emitted (docs/matile.md, nest form). nest: one role
// that fetches its operands; roles: roles and rings, but no waits, releases and turns yet.
enum class KernelForm : uint8_t { Final, Nest, Roles };
const std::vector<std::string_view>& words(KernelForm);
enum class Begins : uint8_t { Late, Early };
const std::vector<std::string_view>& words(Begins);

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

struct Let {
  static constexpr std::string_view kFormat = "let $name = $value";
  static constexpr std::string_view kDoc =
      "A scalar. Outside kernels it is evaluated by the host for each launch; inside it is "
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
      "map $name[$axes] = $value box $box{ step $step}{ swizzle $swizzle}{ promote $promote}";
  static constexpr std::string_view kDoc =
      "A strided view of a tensor for the copy engine, innermost axis first: the element it "
      "names for each point of its axes, and the box one copy moves. Points outside the "
      "extents read 0 and are not written. step n: of the second axis every n-th point.";
  ir::Name name;
  ir::Axes axes;
  ir::Expr value;
  ir::Exprs box;
  ir::OptionalInt step = {};
  MapSwizzle swizzle = MapSwizzle::B128;
  ir::OptionalInt promote;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("axes", s.axes);
    f("value", s.value);
    f("box", s.box);
    f("step", s.step);
    f("swizzle", s.swizzle);
    f("promote", s.promote);
  }
  static const ir::OpInfo& info();
};

struct Kernel {
  static constexpr std::string_view kFormat =
      "kernel $name{ $form}{ resident $resident}{ cluster $cluster}{ rank $rank}{ begins "
      "$begins}{ reads $reads}{ chains $chains}$body";
  static constexpr std::string_view kDoc =
      "A kernel: declarations of its shared resources, then its roles. nest, roles: forms that "
      "passes finish before it can be emitted. resident n: n of its CTAs "
      "share a multiprocessor, so each gets that part of the registers and of the shared memory. "
      "cluster n: n neighbouring CTAs run together, walk the same tiles and may multicast copies "
      "to each other; `rank` tells them apart. begins early: its CTAs start before the kernels in "
      "front of it have ended, and wait for them. reads ordered: reads of global memory stay where "
      "the text has them. chains n: partial results of a fold in a thread.";
  ir::Name name;
  KernelForm form = KernelForm::Final;
  ir::OptionalInt resident = {};
  ir::OptionalInt cluster = {};
  ir::Name rank = {};
  Begins begins = Begins::Late;
  decision::ReadOrder reads = decision::ReadOrder::Free;
  ir::OptionalInt chains = {};
  ir::Block body = {};
  int ctas() const { return static_cast<int>(cluster.value_or(1)); }
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("form", s.form);
    f("resident", s.resident);
    f("cluster", s.cluster);
    f("rank", s.rank);
    f("begins", s.begins);
    f("reads", s.reads);
    f("chains", s.chains);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Launch {
  static constexpr std::string_view kFormat =
      "launch $kernel grid $grid{ else $unaligned_fallback}";
  static constexpr std::string_view kDoc =
      "Runs a kernel on so many CTAs, rounded up to whole clusters. Launches run in the order of "
      "the text. else: the kernel that runs instead if a tensor is not aligned as the first one "
      "needs it.";
  ir::Name kernel;
  ir::Expr grid;
  ir::Name unaligned_fallback = {};
  static void fields(auto& s, auto&& f) {
    f("kernel", s.kernel);
    f("grid", s.grid);
    f("unaligned_fallback", s.unaligned_fallback);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::matile
