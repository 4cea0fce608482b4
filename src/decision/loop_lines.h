// SPDX-License-Identifier: Apache-2.0
// Lines about the loop over the steps of the streamed axis.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

enum class LiveKind : uint8_t { All, Range, DataRange, List };
const std::vector<std::string_view>& words(LiveKind);

struct Live {
  static constexpr std::string_view kFormat = "live $axis $kind{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: which steps of the streamed axis the loop runs, where masks hide some. all: "
      "every "
      "step. range: from the first to the last that masks of positions leave. data_range: these, "
      "and masks of data as well, which small kernels summarise beforehand. list: the steps that "
      "are left, in a list that small kernels make beforehand.";
  ir::Name axis;
  LiveKind kind = LiveKind::All;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axis", s.axis);
    f("kind", s.kind);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class LoopDirection : uint8_t { Up, Down };
const std::vector<std::string_view>& words(LoopDirection);

struct LoopOrder {
  static constexpr std::string_view kFormat = "loop $direction{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: the steps of the streamed axis run from the first to the last (up) or from the "
      "last to the first (down).";
  LoopDirection direction = LoopDirection::Up;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("direction", s.direction);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class ReferenceKind : uint8_t { Follow, Lazy, Speculative };
const std::vector<std::string_view>& words(ReferenceKind);

struct Reference {
  static constexpr std::string_view kFormat = "reference $kind{ lag $lag}{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: when a running reference (such as the maximum that a rolled sum is relative to) "
      "moves. follow: with every step. lazy: only where it would lag by more than lag powers of "
      "two. speculative: like lazy, but weights are computed with the old reference before the new "
      "one is known, and computed again where that was too far.";
  ReferenceKind kind = ReferenceKind::Follow;
  ir::OptionalInt lag;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("kind", s.kind);
    f("lag", s.lag);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Pipeline {
  static constexpr std::string_view kFormat = "pipeline $depth{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: products that need other products of the same step run so many steps later (0 or "
      "1).";
  ir::OptionalInt depth;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("depth", s.depth);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Segments {
  static constexpr std::string_view kFormat = "segments $use{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: steps that no mask touches have a loop of their own, without the mask.";
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class AddPlace : uint8_t { Onto, Apart };
const std::vector<std::string_view>& words(AddPlace);

struct Add {
  static constexpr std::string_view kFormat = "add $place{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: how products of a step come to the sum of the loop. onto: the matrix unit adds "
      "them to it. apart: they begin at 0, and threads add them to the sum in f32, which is more "
      "exact and takes the registers of one more tile. Without the line: apart where the unit is "
      "too coarse for long sums, onto elsewhere.";
  AddPlace place = AddPlace::Onto;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("place", s.place);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
