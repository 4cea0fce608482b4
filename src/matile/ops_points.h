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
// A point with a long reduction has a warp; neighbouring lanes read neighbouring elements:
//
//     points i < M by 32
//       value least : i64 = i64(inf)
//       share k up K
//         assign least = min(least, A[i, k])
//       join least min
//       write Y[i] = least
//
// The lanes of a warp, or all threads of a CTA, may also walk along the steps of a scan together,
// with several steps of a thread in each round:
//
//     points i < M by 256 threads 256
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
//     points i < M, j < N beside 4
//
// or spread over the tile of its CTA, so that neighbouring threads still have neighbouring points:
//
//     points i < M, j < N spread 64 apart 2 down 4
//
// or a patch along two axes; its rows and columns share their loads:
//
//     points n < B, f < F, i < H, j < W patch f high 8 over i wide 8
//
// Lanes of a point, a warp's or all of a CTA, may put a row in order:
//
//   points i < M by 32
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

struct Points {
  static constexpr std::string_view kFormat =
      "points $axes{ by $lanes_per_point}{ beside $points_per_thread}{ line $points_of_line}{ "
      "across $across}{ of $points_across}{ lines $lines_across}{ spread $spread}{ apart "
      "$points_apart}{ down "
      "$points_down}{ patch $patch}{ high $patch_high}{ over $patch_over}{ wide $patch_wide}{ held "
      "$held}{ unroll $unroll}{ windows $windows}{ threads $threads}{ resident $resident}{ own "
      "$own}$body";
  static constexpr std::string_view kDoc =
      "The block is run by one thread for each point of the axes, which are numbered with the last "
      "axis fastest. threads n: a CTA has n threads, a multiple of a warp; without it as many as "
      "the "
      "target has for points (128). by n: by n lanes of a warp (2 to 32, a power of 2), which has "
      "32 / n points beside each other, or by all threads of a CTA (a `walk` alone); all "
      "lanes compute the same but in `share`, and "
      "one of them writes. beside n: a thread has n points beside each other along the last axis "
      "(2, 4 or 8; the plan launches it for whole multiples of n), each with values of its own; "
      "they walk the same loops, and nothing branches. line n: the same for any size, the last "
      "points of a line are fewer; elements that lie beside each other are loaded and stored as "
      "vectors. across axis of n: besides, n points along another axis for each of a line, in "
      "tiles "
      "of the two axes that a CTA has; lines n: n of its threads are along the last axis; elements "
      "that lie beside each other along that axis are loaded as vectors. Nothing loops then. "
      "spread w apart a down d: a CTA has a tile of the last two axes; w of its threads are beside "
      "each other along the last one, the others along the one before. A thread has a points along "
      "the last axis, w of them apart, for each of d points beside each other along the one "
      "before; with line, d lines below each other instead (a is 1, and nothing loops). "
      "patch f high a over i wide b: a thread has a points beside each other along one axis for "
      "each of b along another; what does not change along an axis is loaded once for its points. "
      "CTAs beside each other have the same points but for those along f, so that all threads of a "
      "CTA read the same of what changes along f alone. Threads at the end of an axis have the "
      "last "
      "points of it, and leave those to others that these write. "
      "held n: where loops whose turns are not known have at most n, what their first turns read "
      "stays in registers for the loops behind; where they have more, it is read again. "
      "unroll n: n turns of a loop that only loads and computes are written one after the other, "
      "where their number is not known. "
      "windows n: loops of known turns, with all loops in them, are written out turn by turn if "
      "they have at most n. "
      "resident n: registers of a thread are limited so that n CTAs share a multiprocessor. "
      "own t: each CTA has a copy of the tensor t in shared memory, which its points scatter to; "
      "CTAs take blocks of points in turn, and combine their copies with the tensor at their end. "
      "Stands alone in its kernel.";
  ir::Axes axes;
  ir::OptionalInt lanes_per_point;
  ir::OptionalInt points_per_thread;
  ir::OptionalInt points_of_line;
  ir::Name across;
  ir::OptionalInt points_across;
  ir::OptionalInt lines_across;
  ir::OptionalInt spread;
  ir::OptionalInt points_apart;
  ir::OptionalInt points_down;
  ir::Name patch;
  ir::OptionalInt patch_high;
  ir::Name patch_over;
  ir::OptionalInt patch_wide;
  ir::OptionalInt held;
  ir::OptionalInt unroll;
  ir::OptionalInt windows;
  ir::OptionalInt threads;
  ir::OptionalInt resident;
  ir::Name own;
  ir::Block body;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("lanes_per_point", s.lanes_per_point);
    f("points_per_thread", s.points_per_thread);
    f("points_of_line", s.points_of_line);
    f("across", s.across);
    f("points_across", s.points_across);
    f("lines_across", s.lines_across);
    f("spread", s.spread);
    f("points_apart", s.points_apart);
    f("points_down", s.points_down);
    f("patch", s.patch);
    f("patch_high", s.patch_high);
    f("patch_over", s.patch_over);
    f("patch_wide", s.patch_wide);
    f("held", s.held);
    f("unroll", s.unroll);
    f("windows", s.windows);
    f("threads", s.threads);
    f("resident", s.resident);
    f("own", s.own);
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
