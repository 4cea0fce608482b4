// SPDX-License-Identifier: Apache-2.0
// Lines about how operands reach a kernel and how results leave it.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

enum class OperandPath : uint8_t { Copied, Direct };
const std::vector<std::string_view>& words(OperandPath);

struct Bring {
  static constexpr std::string_view kFormat = "bring $operand $path{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: how a box that only element-wise work uses arrives: copied to shared memory by "
      "the copy engine, or read by each thread directly.";
  ir::Name operand;
  OperandPath path = OperandPath::Copied;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("path", s.path);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Whole {
  static constexpr std::string_view kFormat = "whole $operand $use{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: a box that only element-wise work uses goes to registers at once where it is "
      "used; off: its elements are read there one by one. Panels of a box before a store by panels "
      "are no such use.";
  ir::Name operand;
  Switch use = Switch::On;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Fetch {
  static constexpr std::string_view kFormat = "fetch $moment{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: what a step with one product of a computed operand loads is fetched at its "
      "beginning (early), or where it is used (late).";
  Moment moment = Moment::Early;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("moment", s.moment);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Promote {
  static constexpr std::string_view kFormat = "promote $operand $bytes{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: bytes that a miss of the operand's copies brings to the second-level cache (0, "
      "64, 128 or 256).";
  ir::Name operand;
  ir::OptionalInt bytes;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("bytes", s.bytes);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Ring {
  static constexpr std::string_view kFormat =
      "ring $operands{ slots $slots}{ loader $loader}{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: slots of the ring in shared memory that operands pass through, and the loader "
      "warp that fills it.";
  ir::Names operands;
  ir::OptionalInt slots;
  ir::OptionalInt loader;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operands", s.operands);
    f("slots", s.slots);
    f("loader", s.loader);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Stages {
  static constexpr std::string_view kFormat = "stages $operand $buffers{ on $ring}{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: buffers in shared memory through which each warp group stores a result; on: they "
      "lie in the slots of that operand's ring, which the tile no longer needs then.";
  ir::Name operand;
  ir::OptionalInt buffers;
  ir::Name ring;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("buffers", s.buffers);
    f("ring", s.ring);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
