// SPDX-License-Identifier: Apache-2.0
#include "emit/points/each_point.h"

namespace nautilus::emit {

EachLine::EachLine(PointsScope& scope) : scope_(scope), is_asked_(!scope.mode.are_whole) {
  const PointsGrid& grid = scope.grid;
  if (!grid.across) return;
  scope.out.open("UNROLL for (int over = 0; over < {}; ++over) {{", grid.points_across);
  if (is_asked_) scope.out.open("if (over < exist_across) {{");
  const ir::Name axis = grid.across.name();
  place_.emplace(scope, axis, fmt::format("({} + over)", scope.local(axis)));
}

EachLine::~EachLine() {
  if (!place_) return;
  if (is_asked_) scope_.out.close();
  scope_.out.close();
}

EachInLine::EachInLine(PointsScope& scope) : scope_(scope) {
  const PointsGrid& grid = scope.grid;
  if (!grid.has_several()) return;
  const auto open = [&](const std::string& head) {
    scope.out.open("{} {{", head);
    ++levels_;
  };
  open(fmt::format("UNROLL for (int beside = 0; beside < {}; ++beside)", grid.points_per_thread));
  if (!scope.mode.turn.empty()) open(fmt::format("if ({})", scope.mode.turn));
  if (grid.may_end() && !scope.mode.are_whole) open("if (beside < exist)");
  const ir::Name axis = grid.last.name();
  const std::string& first = scope.local(axis);
  place_.emplace(scope, axis,
                 grid.spread > 0 && !grid.is_line
                     ? fmt::format("({} + {} * beside)", first, grid.spread)
                     : fmt::format("({} + beside)", first));
}

EachInLine::~EachInLine() {
  for (; levels_ > 0; --levels_) scope_.out.close();
}

}  // namespace nautilus::emit
