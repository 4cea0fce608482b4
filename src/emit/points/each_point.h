// SPDX-License-Identifier: Apache-2.0
// Loops over the points of a thread, around text that is the same for each of them. While one of
// these objects lives, what is written stands in such a loop, where the axes of the points have
// the point's places.
#pragma once

#include <optional>

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// The lines of a thread that has points across its last axis.
class EachLine {
 public:
  explicit EachLine(PointsScope& scope);
  ~EachLine();
  EachLine(const EachLine&) = delete;
  EachLine& operator=(const EachLine&) = delete;

 private:
  PointsScope& scope_;
  bool is_asked_;  // whether the line exists
  std::optional<OtherText> place_;
};

// The points of one line, or of a thread that has no more than that.
class EachInLine {
 public:
  explicit EachInLine(PointsScope& scope);
  ~EachInLine();
  EachInLine(const EachInLine&) = delete;
  EachInLine& operator=(const EachInLine&) = delete;

 private:
  PointsScope& scope_;
  int levels_ = 0;  // of braces
  std::optional<OtherText> place_;
};

// All points of a thread.
class EachPoint {
 public:
  explicit EachPoint(PointsScope& scope) : lines_(scope), points_(scope) {}

 private:
  EachLine lines_;
  EachInLine points_;
};

}  // namespace nautilus::emit
