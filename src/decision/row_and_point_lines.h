// SPDX-License-Identifier: Apache-2.0
// Lines about row and point kernels: what a thread holds and how many share a row or a point.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

struct Columns {
  static constexpr std::string_view kFormat = "columns $count{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: columns that a CTA has in registers at a time: of a row that it holds at most, "
      "of "
      "a step along a row, or of a block of elements.";
  ir::OptionalInt count;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("count", s.count);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// Where the first vector of a row begins: with the row, or at the last boundary of vectors in
// memory that is not behind the row's beginning.
enum class VectorStart : uint8_t { Row, Boundary };
const std::vector<std::string_view>& words(VectorStart);

struct Vector {
  static constexpr std::string_view kFormat = "vector $elements{ $start}{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: neighbouring elements that a thread loads at once. The kernel runs for rows of "
      "whole vectors; with 1 it takes tensors of any alignment. boundary: it takes them, too; "
      "vectors lie where memory has them, and those that are not whole inside the row are loaded "
      "and stored element by element. Form points, for a scan along memory: neighbouring steps of "
      "a thread, whose elements it loads and stores at once.";
  ir::OptionalInt elements;
  VectorStart start = VectorStart::Row;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("elements", s.elements);
    f("start", s.start);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class HoldKind : uint8_t { Steps, Row, Filled };
const std::vector<std::string_view>& words(HoldKind);

struct Hold {
  static constexpr std::string_view kFormat = "hold $kind{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: what stays in registers from one reduction to the next. row: rows of up to so "
      "many columns. filled: rows of exactly so many. steps: nothing, a row is walked over once "
      "for each reduction.";
  HoldKind kind = HoldKind::Steps;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("kind", s.kind);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Shared {
  static constexpr std::string_view kFormat = "shared $operand $moment{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: when elements of a tensor that all rows share are loaded: early, with the row, "
      "or "
      "late, piece by piece where elements are written.";
  ir::Name operand;
  Moment moment = Moment::Early;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("moment", s.moment);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Keep {
  static constexpr std::string_view kFormat = "keep $operand $use{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: elements of a statement that several others need stay in registers; off: they "
      "are "
      "computed again.";
  ir::Name operand;
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Unpacked {
  static constexpr std::string_view kFormat = "unpacked $operand $use{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: behind a reduction, elements of 16 bits stay in registers as the numbers that "
      "they "
      "were unpacked to; off: they are unpacked again.";
  ir::Name operand;
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Moving {
  static constexpr std::string_view kFormat = "moving $operand $use{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: a sum whose terms need a number of other reductions is taken in their walk, "
      "against "
      "what the number is so far; off: in a walk of its own.";
  ir::Name operand;
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("operand", s.operand);
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Ahead {
  static constexpr std::string_view kFormat = "ahead $rows{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: a CTA asks the cache for the row that lies so many rows, times multiprocessors, "
      "behind its own; 0: for none.";
  ir::OptionalInt rows;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("rows", s.rows);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Lanes {
  static constexpr std::string_view kFormat = "lanes $count{ $by}";
  static constexpr std::string_view kDoc =
      "Forms points and parts: lanes of a warp that share the loops of a point; a power of two. A "
      "scan with vectors may have more: all threads of a CTA. Form rows: lanes of a warp that hold "
      "a row together; a CTA has a row for each so many of its threads. Form sort: lanes of a warp "
      "that put a row in order, or all threads of a CTA.";
  ir::OptionalInt count;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("count", s.count);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Each {
  static constexpr std::string_view kFormat = "each $points{ $by}";
  static constexpr std::string_view kDoc =
      "Forms points and parts: neighbouring points of a thread; of a scan with vectors: steps of a "
      "thread in a round. Form rows, for reductions over several axes: rows that a step loads at "
      "once. Form sort: elements of a lane.";
  ir::OptionalInt points;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("points", s.points);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Across {
  static constexpr std::string_view kFormat = "across $axis $points{ lines $lines}{ $by}";
  static constexpr std::string_view kDoc =
      "Form points: a thread has so many points along this axis, too, for each of its points along "
      "the last one. What lies along this axis in memory is loaded in vectors, what lies along the "
      "last one is stored in vectors: a tensor is transposed on the way. lines: so many threads of "
      "a "
      "CTA "
      "are neighbours along the last axis, the others along this one.";
  ir::Name axis;
  ir::OptionalInt points;
  ir::OptionalInt lines;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axis", s.axis);
    f("points", s.points);
    f("lines", s.lines);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Spread {
  static constexpr std::string_view kFormat = "spread $threads apart $apart down $down{ $by}";
  static constexpr std::string_view kDoc =
      "Form points: a CTA has a tile of the last two axes, with so many of its threads along the "
      "last one. A thread has some points along that, a row of threads apart, for each of some "
      "points beside each other along the axis before.";
  ir::OptionalInt threads;
  ir::OptionalInt apart;
  ir::OptionalInt down;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("threads", s.threads);
    f("apart", s.apart);
    f("down", s.down);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Patch {
  static constexpr std::string_view kFormat = "patch $rows $high by $columns $wide{ $by}";
  static constexpr std::string_view kDoc =
      "Form points: a thread has so many points along one axis for each of so many along another. "
      "What does not change along one of them is loaded once for its points: of a product both "
      "operands, of a convolution also what windows share.";
  ir::Name rows;
  ir::OptionalInt high;
  ir::Name columns;
  ir::OptionalInt wide;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("rows", s.rows);
    f("high", s.high);
    f("columns", s.columns);
    f("wide", s.wide);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Held {
  static constexpr std::string_view kFormat = "held $turns{ $by}";
  static constexpr std::string_view kDoc =
      "Form points: where the loops of a point have at most so many turns, elements that one loop "
      "reads stay in registers for the loops behind it; where they have more, they are read again.";
  ir::OptionalInt turns;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("turns", s.turns);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct PointAxes {
  static constexpr std::string_view kFormat = "points $axes{ $by}";
  static constexpr std::string_view kDoc =
      "Forms points and scatter: the axes of the kernel, the one last along which neighbouring "
      "threads have neighbouring points. Without the line: in the order of its statement.";
  ir::Names axes;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Private {
  static constexpr std::string_view kFormat = "private $use{ ctas $ctas}{ $by}";
  static constexpr std::string_view kDoc =
      "Form scatter: each CTA has a copy of the result in shared memory, where its threads combine "
      "their terms, and adds it to memory at its end. For results of few elements, at which many "
      "terms would meet. ctas n: n of them for each multiprocessor share all terms.";
  Switch use = Switch::Off;
  ir::OptionalInt ctas;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("use", s.use);
    f("ctas", s.ctas);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct First {
  static constexpr std::string_view kFormat = "first each $each threads $threads{ $by}";
  static constexpr std::string_view kDoc =
      "Form scatter: the kernel in front, which writes what each element is without terms. A "
      "thread of it has so many elements beside each other, a CTA so many threads.";
  ir::OptionalInt each;
  ir::OptionalInt threads;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("each", s.each);
    f("threads", s.threads);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Merge {
  static constexpr std::string_view kFormat =
      "merge each $each threads $threads{ pairs $pairs}{ $by}";
  static constexpr std::string_view kDoc =
      "Form sort, rows of any length: the lanes of a row put a run of it in order, and a second "
      "kernel finds the place of each element of a run among the elements of all others. A thread "
      "of it has so many neighbours, a CTA so many threads. pairs n: as many kernels before merge "
      "pairs of runs, where rows have so many.";
  ir::OptionalInt each;
  ir::OptionalInt threads;
  ir::OptionalInt pairs;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("each", s.each);
    f("threads", s.threads);
    f("pairs", s.pairs);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Unroll {
  static constexpr std::string_view kFormat = "unroll $turns{ $by}";
  static constexpr std::string_view kDoc =
      "Forms points and parts: so many turns of a loop, whose number of turns is not known, are "
      "written one after the other: their loads are under way together. 1: one turn at a time.";
  ir::OptionalInt turns;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("turns", s.turns);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Windows {
  static constexpr std::string_view kFormat = "windows $turns{ $by}";
  static constexpr std::string_view kDoc =
      "Form points: windows, loops of known turns, are written out turn by turn if they have at "
      "most so many turns: neighbouring points share what they load. 0: windows stay loops.";
  ir::OptionalInt turns;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("turns", s.turns);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Threads {
  static constexpr std::string_view kFormat = "threads $count{ $by}";
  static constexpr std::string_view kDoc =
      "Forms points, parts and sort: threads of a CTA; a multiple of a warp.";
  ir::OptionalInt count;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("count", s.count);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Serves {
  static constexpr std::string_view kFormat =
      "serves{ from $least points}{ to $most points}{ with $parts parts}{ $by}";
  static constexpr std::string_view kDoc =
      "Form parts, alternatives behind the first: the sizes that the plan launches this one for, "
      "at least and at most so many points and at least so many parts; without numbers all sizes. "
      "Where several serve, the first of them runs; where none does, the first alternative.";
  ir::OptionalInt least;
  ir::OptionalInt most;
  ir::OptionalInt parts;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("least", s.least);
    f("most", s.most);
    f("parts", s.parts);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
