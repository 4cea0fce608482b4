// SPDX-License-Identifier: Apache-2.0
// Kernels of scalar code: one thread for each point of some axes, with values of its own. The
// general form of a kernel, which can express every program of the scalar level; tiles are for
// speed.
//
//   kernel Y
//     points i < M, j < N
//       value acc : f32 = 0.0
//       loop k from 0 up K
//         assign acc = acc + f32(A[i, k]) * f32(B[k, j])
//       write Y[i, j] = bf16(acc)
//
// A `layout` before the points says how threads compute them, in the words of schedules
// (decision/row_and_point_lines.h). A point with a long reduction has a warp; neighbouring lanes
// read neighbouring elements:
//
//     layout
//       lanes 32
//     points i < M
//       value least : i64 = i64(inf)
//       share k up K
//         assign least = min(least, A[i, k])
//       join least min
//       write Y[i] = least
//
// The lanes of a warp, or all threads of a CTA, may also walk along the steps of a scan together,
// with several steps of a thread in each round:
//
//     layout
//       lanes 256
//       threads 256
//     points i < M
//       value carry : f32 = 0.0
//       walk t up T each 16 vector 4
//         value x : f32 = X[i, t]
//         value all : f32 = 0.0
//         scan x sum total all
//         write Y[i, t] = carry + x
//         assign carry = carry + all
//
// A thread may have several neighbouring points, for which places and loops are the same:
//
//     layout
//       each 4
//     points i < M, j < N
//
// or spread over the tile of its CTA, so that neighbouring threads still have neighbouring points:
//
//     layout
//       spread 64 apart 2 down 4
//     points i < M, j < N
//
// or a patch along two axes; its rows and columns share their loads:
//
//     layout
//       patch f 8 by i 8
//     points n < B, f < F, i < H, j < W
//
// Lanes of a point, a warp's or all of a CTA, may put a row in order:
//
//   layout
//     lanes 32
//   points i < M
//     sort j < N each 8 largest X[i, j] when X[i, j] == X[i, j] place p to 8
//       write V[i, p] = where(p < N, X[i, j], -inf)
//
// A thread may look for a number up to which a condition holds, by halving:
//
//   points i < M
//     search q < N while S[q] < X[i]
//     write Y[i] = q
//
// Integers have their declared width here, i64 too; every dtype of the language may be a value.
// There is no order among threads: a kernel must not read elements that it writes at other points.
#pragma once

#include "ir/op.h"

namespace nautilus::matile {

// Whether the last thread along the last axis may have fewer points than the others.
enum class LastPoints : uint8_t { Whole, Ragged };
const std::vector<std::string_view>& words(LastPoints);

// A line of a layout; all others are lines of schedules as they are.
struct EachPoints {
  static constexpr std::string_view kFormat = "each $points{ $last}";
  static constexpr std::string_view kDoc =
      "In a `layout`: a thread has so many neighbouring points along the last axis (2, 4 or 8), "
      "each with values of its own. They walk the same loops, and nothing branches. The plan "
      "launches the kernel only where the extent of the axis is a multiple. ragged: for any "
      "extent, the last thread has fewer points; elements that are neighbours in memory are loaded "
      "and stored as vectors.";
  ir::OptionalInt points;
  LastPoints last = LastPoints::Whole;
  static void fields(auto& s, auto&& f) {
    f("points", s.points);
    f("last", s.last);
  }
  static const ir::OpInfo& info();
};

// The lines that a layout may have, in the order in which lowering writes them.
const std::vector<const ir::OpInfo*>& layout_vocabulary();

struct LayoutLines {
  static constexpr std::string_view kFormat = "layout$body";
  static constexpr std::string_view kDoc =
      "Before `points`: which threads compute which points. Each line stands at most once, in any "
      "order, and means what it means in a schedule (`nautilus print --ops layout`). Without a "
      "`layout` each point has one thread, and a CTA has as many as the target says (128). All "
      "lanes of a point compute the same but in `share`, and one of them writes; if they are all "
      "threads of a CTA, they `walk` or `sort` together. `across` needs `each n ragged`. `spread` "
      "with `each n ragged` has lines of points 1 apart. In both cases nothing loops. With a "
      "`patch`, CTAs with neighbouring numbers have the same points but for those along its first "
      "axis, so that all threads of a CTA read the same of what changes along that axis alone; "
      "threads at the end of an axis have its last points, and do not write those that others "
      "write. `private on`: CTAs take blocks of points in turn, and the launch says how many CTAs "
      "there are.";
  ir::Block body;
  static void fields(auto& s, auto&& f) { f("body", s.body); }
  static const ir::OpInfo& info();
  static const std::vector<const ir::OpInfo*>& vocabulary() { return layout_vocabulary(); }
};

struct Points {
  static constexpr std::string_view kFormat = "points $axes$body";
  static constexpr std::string_view kDoc =
      "The block is run for each point of the axes, which are numbered with the last axis fastest: "
      "by one thread, or as the `layout` before it says. Nothing else stands in its kernel.";
  ir::Axes axes;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Value {
  static constexpr std::string_view kFormat = "value $name : $dtype = $init";
  static constexpr std::string_view kDoc = "A number of the thread's own, which `assign` changes.";
  ir::Name name;
  ir::DType dtype = ir::DType::F32;
  ir::Expr init;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("dtype", s.dtype);
    f("init", s.init);
  }
  static const ir::OpInfo& info();
};

struct Assign {
  static constexpr std::string_view kFormat = "assign $name = $value";
  static constexpr std::string_view kDoc = "Gives a value of the thread another number.";
  ir::Name name;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct SharedLoop {
  static constexpr std::string_view kFormat = "share $var up $to$body";
  static constexpr std::string_view kDoc =
      "A loop from 0 whose turns the lanes of a point take one after another. Values that it "
      "assigns differ between lanes until `join`.";
  ir::Name var;
  ir::Expr to;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("var", s.var);
    f("to", s.to);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Join {
  static constexpr std::string_view kFormat = "join $name $reducer";
  static constexpr std::string_view kDoc =
      "Combines the numbers that the lanes of a point have; all of them get the result.";
  ir::Name name;
  expr::Reducer reducer = expr::Reducer::Sum;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("reducer", s.reducer);
  }
  static const ir::OpInfo& info();
};

// The order of a walk's numbers over the lanes of a point.
enum class WalkOrder : uint8_t { Up, Down };
const std::vector<std::string_view>& words(WalkOrder);

struct LaneLoop {
  static constexpr std::string_view kFormat =
      "walk $var $order $count each $each vector $vector$body";
  static constexpr std::string_view kDoc =
      "The numbers 0 <= var < count in rounds that all lanes of a point are in; counting down, "
      "from "
      "count - 1 on. A lane has `each` numbers of a round, in vectors of so many beside each "
      "other, "
      "those of a warp behind each other. What lies along them in memory is loaded and stored as "
      "vectors, and loaded a round ahead. Values, scans, writes and assignments, in this order: "
      "values and writes are of numbers that exist; a scan takes the others for its identity.";
  ir::Name var;
  WalkOrder order = WalkOrder::Up;
  ir::Expr count;
  ir::OptionalInt each;
  ir::OptionalInt vector;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("var", s.var);
    f("order", s.order);
    f("count", s.count);
    f("each", s.each);
    f("vector", s.vector);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

// Whether the result of a scan includes the element at its own place.
enum class ScanReach : uint8_t { Upto, Before };
const std::vector<std::string_view>& words(ScanReach);

struct LaneScan {
  static constexpr std::string_view kFormat = "scan $name $reducer total $total{ $reach}";
  static constexpr std::string_view kDoc =
      "Each number of a round becomes the combination of those up to it, in the "
      "order of a `walk`; `total` that of all numbers of a round. before: of those before it.";
  ir::Name name;
  expr::Reducer reducer = expr::Reducer::Sum;
  ir::Name total;
  ScanReach reach = ScanReach::Upto;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("reducer", s.reducer);
    f("total", s.total);
    f("reach", s.reach);
  }
  static const ir::OpInfo& info();
};

struct Write {
  static constexpr std::string_view kFormat = "write $target[$indices] = $value";
  static constexpr std::string_view kDoc = "Writes one element of a tensor.";
  ir::Name target;
  ir::Exprs indices;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Scatter {
  static constexpr std::string_view kFormat =
      "scatter $target[$indices] $reducer $value{ when $condition}";
  static constexpr std::string_view kDoc =
      "Combines one element of a tensor with a value, by an atomic operation of the memory: sum, "
      "max, min, any or all. Other points may have the same element; a kernel in front has written "
      "what it begins with.";
  ir::Name target;
  ir::Exprs indices;
  expr::Reducer reducer = expr::Reducer::Sum;
  ir::Expr value;
  ir::Expr condition = {};
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("reducer", s.reducer);
    f("value", s.value);
    f("condition", s.condition);
  }
  static const ir::OpInfo& info();
};

// Which elements of a row in order come first.
enum class SortFirst : uint8_t { Largest, Smallest };
const std::vector<std::string_view>& words(SortFirst);

struct Sort {
  static constexpr std::string_view kFormat =
      "sort $axes each $each $first $key{ when $condition} place $place to $places$body";
  static constexpr std::string_view kDoc =
      "The lanes of a point put the elements of one axis in order by their keys, the largest or "
      "the "
      "smallest first, equal ones as they stand; those for which the condition does not hold come "
      "last. A lane has `each` of them, so that there are at most lanes times each. The block is "
      "run "
      "once for each place less than `places`, by any lane: the axis is the element that has it, "
      "which exists where the place is less than the extent. Stands alone in its points.";
  ir::Axes axes;
  ir::OptionalInt each;
  SortFirst first = SortFirst::Largest;
  ir::Expr key;
  ir::Expr condition = {};
  ir::Name place;
  ir::Expr places;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("each", s.each);
    f("first", s.first);
    f("key", s.key);
    f("condition", s.condition);
    f("place", s.place);
    f("places", s.places);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
};

struct Search {
  static constexpr std::string_view kFormat = "search $axes{ from $from} while $condition";
  static constexpr std::string_view kDoc =
      "The first number of an axis for which the condition does not hold, or its extent, found by "
      "halving: it holds for all numbers before and for none behind, fewer than 2^32 of them. "
      "from: "
      "the numbers begin there instead of at 0, and steps that double find where to halve, which "
      "is "
      "soon for numbers near the first.";
  ir::Axes axes;
  ir::Expr from = {};
  ir::Expr condition;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("from", s.from);
    f("condition", s.condition);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::matile
