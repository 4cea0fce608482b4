// SPDX-License-Identifier: Apache-2.0
// Lines about how work is divided: tiles, parts of an axis, clusters, CTAs on a multiprocessor.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

struct Tile {
  static constexpr std::string_view kFormat = "tile $axis $size{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: elements of an axis in a tile: of the rows, of a step along the streamed axis, "
      "or "
      "of columns that do not fit a tile as a whole.";
  ir::Name axis;
  ir::OptionalInt size;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axis", s.axis);
    f("size", s.size);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class CombineKind : uint8_t { Kernel, Last };
const std::vector<std::string_view>& words(CombineKind);

struct Split {
  static constexpr std::string_view kFormat =
      "split $axis{ into $parts}{ from $terms terms}{ to $results results} combine $combine{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: the steps of the streamed axis in parts that run at the same time, at most so "
      "many; without a number as many as fill the machine. A kernel of its own puts them together, "
      "or the tile that comes last does. Forms rows and points: the terms of a reduction in so "
      "many parts, which kernels of their own compute; 1: in one. Form points, with a second "
      "alternative: where there are from so many terms and up to so many results; otherwise that "
      "one takes them in one.";
  ir::Name axis;
  ir::OptionalInt parts = {};
  ir::OptionalInt terms = {};
  ir::OptionalInt results = {};
  CombineKind combine = CombineKind::Kernel;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axis", s.axis);
    f("parts", s.parts);
    f("terms", s.terms);
    f("results", s.results);
    f("combine", s.combine);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Cluster {
  static constexpr std::string_view kFormat = "cluster $tiles{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: so many tiles beside each other along the rows run together and share what they "
      "load. Form rows: so many CTAs run together and share each row that is held.";
  ir::OptionalInt tiles;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tiles", s.tiles);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Resident {
  static constexpr std::string_view kFormat = "resident $tiles{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: so many tiles share a multiprocessor. Forms points and parts: registers of a "
      "thread "
      "are limited so that so many CTAs do; 1: as the compiler of the text takes them.";
  ir::OptionalInt tiles;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tiles", s.tiles);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
