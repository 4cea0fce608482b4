// SPDX-License-Identifier: Apache-2.0
// Lines about the members of a kernel: which statements it computes, and along which axes.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

struct Rows {
  static constexpr std::string_view kFormat = "rows $axis{ $by}";
  static constexpr std::string_view kDoc = "Form tile: the axis whose elements are rows of tiles.";
  ir::Name axis;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axis", s.axis);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Stream {
  static constexpr std::string_view kFormat = "stream $axis{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: the axis along which the kernel's loop steps.";
  ir::Name axis;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axis", s.axis);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Fuse {
  static constexpr std::string_view kFormat = "fuse $statements{ $by}";
  static constexpr std::string_view kDoc =
      "Statements that the kernel computes besides the one it is named after; form tile: "
      "element-wise or by inner reductions.";
  ir::Names statements;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("statements", s.statements);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Roll {
  static constexpr std::string_view kFormat = "roll $statements{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: reductions that the kernel's loop carries from step to step, with their repairs.";
  ir::Names statements;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("statements", s.statements);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Inner {
  static constexpr std::string_view kFormat =
      "inner $axes{ pieces $length} of $statement{ against $number}{ with $elements}{ $by}";
  static constexpr std::string_view kDoc =
      "Forms rows and points: of a reduction over several axes, a kernel of its own reduces these "
      "first, for each point of the others; this kernel reduces what it left. pieces: of a "
      "reduction over one axis it reduces pieces of so many terms. against: the terms need a "
      "number of that reduction, whose steps are the same; each part takes what the number is "
      "there, and is moved to the number itself. with: elements that are computed in the terms "
      "instead of being read.";
  ir::Names axes;
  ir::OptionalInt length = {};
  ir::Name statement;
  ir::Name number = {};
  ir::Names elements = {};
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("length", s.length);
    f("statement", s.statement);
    f("number", s.number);
    f("elements", s.elements);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
