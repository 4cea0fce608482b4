// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_decode.h"

#include <algorithm>

namespace nautilus::emit {
namespace {

// So many blocks of points as an axis has.
std::string blocks_text(const std::string& extent, int64_t points) {
  return points == 1 ? extent : fmt::format("(({} + {}) / {})", extent, points - 1, points);
}

// Of an axis, in points of a thread.
std::string extent_text(PointsScope& scope, const ir::Axes& axes, size_t k) {
  const PointsGrid& grid = scope.grid;
  const std::string all = scope.text(axes[k].extent);
  if (grid.points_per_thread == 1 || k + 1 < axes.size()) return all;
  return grid.is_line ? blocks_text(all, grid.points_per_thread)
                      : fmt::format("({} / {})", all, grid.points_per_thread);
}

// Of all points, in points of a thread.
std::string count_text(PointsScope& scope, const ir::Axes& axes) {
  std::string count;
  for (size_t k = 0; k < axes.size(); ++k)
    count += fmt::format("{}(u64){}", k ? " * " : "", extent_text(scope, axes, k));
  return count;
}

// The places of point number `points` along the axes.
void decode_axes(PointsScope& scope, const ir::Axes& axes) {
  const PointsGrid& grid = scope.grid;
  for (size_t k = axes.size(); k-- > 0;) {
    const std::string name = scope.define(axes[k].name);
    const std::string times = grid.points_per_thread > 1 && k + 1 == axes.size()
                                  ? fmt::format("{} * ", grid.points_per_thread)
                                  : "";
    if (k == 0)
      scope.out.line("const long long {} = {}(long long)points;", name, times);
    else
      scope.out.line("const long long {} = {}take_axis(points, {});", name, times,
                     extent_text(scope, axes, k));
  }
}

// How many points of a thread's line exist.
void ask_line(PointsScope& scope, const ir::Axes& axes) {
  if (!scope.grid.is_line) return;
  const std::string all = scope.text(axes.back().extent);
  scope.out.line("const int exist = (int)({0} - {1} < {2} ? {0} - {1} : {2});", all,
                 scope.local(scope.grid.last.name()), scope.grid.points_per_thread);
}

// The number of the thread's point, and which of the point's lanes it is.
void decode_lanes(PointsScope& scope) {
  Writer& out = scope.out;
  const int64_t threads = scope.grid.threads;
  const int64_t lanes = scope.grid.lanes;
  if (lanes == 1) {
    out.line("u64 points = (u64)block_index() * {} + (u64)thread_index();", threads);
  } else if (lanes > scope.grid.warp) {
    const bool is_sorted = scope.points().body[0].is<matile::Sort>();
    out.line("u64 points = (u64)block_index();");
    out.line("const int lane = thread_index(){};",
             is_sorted ? "" : fmt::format(" % {}", scope.grid.warp));
  } else if (lanes == scope.grid.warp) {
    out.line("u64 points = (u64)block_index() * {} + (u64)(thread_index() / {});",
             threads / scope.grid.warp, scope.grid.warp);
    out.line("const int lane = thread_index() % {};", scope.grid.warp);
  } else {
    const int64_t points_per_warp = scope.grid.warp / lanes;
    out.line(
        "u64 points = (u64)block_index() * {0} + (u64)(thread_index() / {1} * {2} + "
        "thread_index() % {2});",
        threads / lanes, scope.grid.warp, points_per_warp);
    out.line("const int lane = thread_index() % {} / {};", scope.grid.warp, points_per_warp);
  }
}

// A thread or its lanes have one point after the other along the last axis. Who has none waits for
// kernels in front too, because the kernel behind waits for this one alone.
void decode_row(PointsScope& scope, const ir::Axes& axes, bool is_early) {
  Writer& out = scope.out;
  const PointsGrid& grid = scope.grid;
  decode_lanes(scope);
  const std::string count = count_text(scope, axes);
  const bool is_mixed = grid.lanes > 1 && grid.lanes < scope.grid.warp;
  if (is_mixed) {
    out.line("const bool has_point = points < {};", count);
    out.line("if (!has_point) points = 0;  // lanes join as a whole warp");
  } else if (is_early) {
    out.line("const bool has_point = points < {};", count);
  } else {
    out.line("if (points >= {}) return;", count);
  }
  decode_axes(scope, axes);
  if (is_early) out.line("wait_for_kernels_in_front();");
  if (is_mixed) {
    out.line("if ({} == 0) return;", count);
  } else if (is_early) {
    out.line("if (!has_point) return;");
  }
  ask_line(scope, axes);
}

// CTAs take blocks of points in turn. The loop stays open.
void decode_turns(PointsScope& scope, const ir::Axes& axes) {
  Writer& out = scope.out;
  const int64_t threads = scope.grid.threads;
  out.line("const u64 all = {};", count_text(scope, axes));
  out.open(
      "for (u64 block = (u64)block_index() * {0}; block < all; block += (u64)block_count() * {0}) "
      "{{",
      threads);
  out.line("u64 points = block + (u64)thread_index();");
  out.line("if (points >= all) continue;");
  decode_axes(scope, axes);
  ask_line(scope, axes);
}

// How many points of a thread exist along an axis, of which it has at most `most` so far apart.
void ask_existing(PointsScope& scope, const ir::Axis& axis, std::string_view name, int64_t most,
                  int64_t apart) {
  Writer& out = scope.out;
  const std::string& at = scope.local(axis.name);
  const std::string all = scope.text(axis.extent);
  out.line("if ({} >= {}) return;", at, all);
  if (apart == 1)
    out.line("const int {0} = (int)({1} - {2} < {3} ? {1} - {2} : {3});", name, all, at, most);
  else
    out.line("const int {0} = (int)({1} - {2} < {3} ? ({1} - {2} + {4}) / {5} : {6});", name, all,
             at, most * apart, apart - 1, apart, most);
}

// A CTA has a tile of the last axis and the one across it. Neighbouring threads are a few
// lines along the last axis, so that those of a warp also load neighbours; where points are spread,
// neighbours have neighbouring points.
void decode_tile(PointsScope& scope, const ir::Axes& axes, bool is_early) {
  Writer& out = scope.out;
  const PointsGrid& grid = scope.grid;
  const int64_t lines = grid.spread > 0 ? grid.spread : grid.lines_across;
  const auto is_across = [&](const ir::Axis& a) {
    return grid.across && a.name == grid.across.name();
  };
  out.line("u64 tiles = block_index();");
  for (size_t k = axes.size(); k-- > 0;) {
    const bool is_last = k + 1 == axes.size();
    const bool is_over = is_across(axes[k]);
    const int64_t own = is_last ? grid.points_per_thread : is_over ? grid.points_across : 1;
    const int64_t threads = is_last ? lines : is_over ? grid.threads / lines : 1;
    const std::string count = blocks_text(scope.text(axes[k].extent), own * threads);
    const std::string taken =
        k == 0 ? "(long long)tiles" : fmt::format("take_axis(tiles, {})", count);
    const std::string thread = is_last   ? fmt::format("thread_index() % {}", lines)
                               : is_over ? fmt::format("thread_index() / {}", lines)
                                         : "";
    const std::string name = scope.define(axes[k].name);
    if (thread.empty())
      out.line("const long long {} = {};", name, taken);
    else if (is_last && grid.spread > 0 && !grid.is_line)
      out.line("const long long {} = {} * {} + {};", name, own * threads, taken, thread);
    else
      out.line("const long long {} = {} * ({} * {} + {});", name, own, threads, taken, thread);
  }
  if (is_early) out.line("wait_for_kernels_in_front();");
  for (const ir::Axis& a : axes) {
    if (is_across(a)) ask_existing(scope, a, "exist_across", grid.points_across, 1);
  }
  ask_existing(scope, axes.back(), "exist", grid.points_per_thread, grid.distance());
}

// Where the patch of a thread begins along an axis. So that all threads have whole patches, those
// at the end of an axis have the last points of it: `again` of them a neighbour has as well.
void begin_patch(PointsScope& scope, const ir::Axis& a, int64_t points, const std::string& taken) {
  Writer& out = scope.out;
  const std::string name = scope.define(a.name);
  const std::string first = scope.fresh(name + "_first");
  const std::string all = scope.text(a.extent);
  out.line("const long long {} = {} * {};", first, points, taken);
  out.line("const long long {0} = {1} + {2} <= {3} ? {1} : {3} < {2} ? 0 : {3} - {2};", name, first,
           points, all);
  const bool is_row = a.name == scope.grid.across.name();
  out.line("const int {} = (int)({} - {});", is_row ? "again_across" : "again", first, name);
  out.line("const int {0} = (int)({1} < {2} ? {1} : {2});", is_row ? "exist_across" : "exist", all,
           points);
}

// A CTA has one place along the rows of patches, so that its threads read the same of what changes
// along them alone; neighbouring CTAs have the others, and read the same of the rest.
void decode_patch(PointsScope& scope, const ir::Axes& axes, bool is_early) {
  Writer& out = scope.out;
  const PointsGrid& grid = scope.grid;
  const auto is_row = [&](const ir::Axis& a) { return a.name == grid.across.name(); };
  const auto points_along = [&](const ir::Axis& a) {
    return is_row(a) ? grid.points_across : a.name == grid.last.name() ? grid.points_per_thread : 1;
  };
  const auto blocks = [&](const ir::Axis& a) {
    return blocks_text(scope.text(a.extent), points_along(a));
  };
  std::string count;
  for (const ir::Axis& a : axes) {
    if (!is_row(a)) count += fmt::format("{}(u64){}", count.empty() ? "" : " * ", blocks(a));
  }
  out.line("u64 tiles = (u64)block_index();");
  for (const ir::Axis& a : axes) {
    if (is_row(a))
      begin_patch(scope, a, grid.points_across, fmt::format("take_axis(tiles, {})", blocks(a)));
  }
  out.line("u64 points = tiles * {} + (u64)thread_index();", grid.threads);
  if (is_early)
    out.line("const bool has_point = points < {};", count);
  else
    out.line("if (points >= {}) return;", count);
  for (size_t k = axes.size(); k-- > 0;) {
    const ir::Axis& a = axes[k];
    if (is_row(a)) continue;
    const std::string taken = fmt::format("take_axis(points, {})", blocks(a));
    if (a.name == grid.last.name())
      begin_patch(scope, a, grid.points_per_thread, taken);
    else
      out.line("const long long {} = {};", scope.define(a.name), taken);
  }
  if (is_early) {
    out.line("wait_for_kernels_in_front();");
    out.line("if (!has_point) return;");
  }
}

}  // namespace

void decode_grid(PointsScope& scope, bool is_early) {
  const ir::Axes& axes = scope.points().axes;
  if (scope.grid.is_private)
    decode_turns(scope, axes);
  else if (scope.grid.is_patch)
    decode_patch(scope, axes, is_early);
  else if (scope.grid.has_tile())
    decode_tile(scope, axes, is_early);
  else
    decode_row(scope, axes, is_early);
  // The point exists, so no extent is 0.
  for (const ir::Axis& a : axes) scope.facts.add_axis(scope.pool.index(a.name), a.extent);
}

}  // namespace nautilus::emit
