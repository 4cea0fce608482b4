// SPDX-License-Identifier: Apache-2.0
// Decisions: every choice that can change the speed of a kernel, as a line of text.
//
//   loop down                           steps from the last to the first
//   groups 2 alternating                two warp groups, each with tiles of its own
//   ring K slots 3 loader 0             a ring of three slots for K, filled by loader warp 0
//
// The same lines stand in schedules (`.sched` files) and, in programs of all levels, in the
// `decisions` block of a kernel: what its passes have still to read. A pass reads its line or
// refuses it; where a line is missing, the pass takes what its rule says. In both cases it notes
// the decision (lines.h), so that a schedule can be printed with all of them.
//
// Numbers have the units that their doc says. Operands and results are named by their tensors; the
// second place of a tensor K in a kernel is K.2, the third K.3.
#pragma once

#include "ir/op.h"

namespace nautilus::decision {

// Who took a decision. The first is the default and is not printed.
enum class By : uint8_t { Auto, Tuned, User };
const std::vector<std::string_view>& words(By);

enum class Switch : uint8_t { Off, On };
const std::vector<std::string_view>& words(Switch);

// --- the program

enum class Rewrite : uint8_t { DistributeRowShift, Gather };
const std::vector<std::string_view>& words(Rewrite);

struct Algebra {
  static constexpr std::string_view kFormat = "algebra $rewrite $use{ $by}";
  static constexpr std::string_view kDoc =
      "Program: an optional rewrite of the equations. distribute_row_shift: differences from a "
      "value of a "
      "row "
      "leave the products that they stand in. gather: operands that no box can bring as they lie "
      "are copied first.";
  Rewrite rewrite = Rewrite::DistributeRowShift;
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("rewrite", s.rewrite);
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Round {
  static constexpr std::string_view kFormat = "round $tensor $dtype{ $by}";
  static constexpr std::string_view kDoc =
      "Program: an f32 temporary that is an operand of a product is stored in the dtype of the "
      "other operand.";
  ir::Name tensor;
  ir::DType dtype = ir::DType::F32;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensor", s.tensor);
    f("dtype", s.dtype);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Locate {
  static constexpr std::string_view kFormat = "locate $tensor{ $by}";
  static constexpr std::string_view kDoc =
      "Program: the position of an extreme is found by reductions in the kernel that rolls the "
      "extreme.";
  ir::Name tensor;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensor", s.tensor);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// --- which statements a kernel has

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

// --- sizes

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
  static constexpr std::string_view kFormat = "split $axis{ into $parts} combine $combine{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: the steps of the streamed axis in parts that run at the same time, at most so "
      "many; without a number as many as fill the machine. A kernel of its own puts them together, "
      "or the tile that comes last does. Forms rows and points: the terms of a reduction in so "
      "many "
      "parts, which kernels of their own compute; 1: in one.";
  ir::Name axis;
  ir::OptionalInt parts;
  CombineKind combine = CombineKind::Kernel;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axis", s.axis);
    f("parts", s.parts);
    f("combine", s.combine);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Inner {
  static constexpr std::string_view kFormat = "inner $axes of $statement{ $by}";
  static constexpr std::string_view kDoc =
      "Forms rows and points: of a reduction over several axes, a kernel of its own reduces these "
      "first, for each point of the others; this kernel reduces what it left.";
  ir::Names axes;
  ir::Name statement;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("statement", s.statement);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Cluster {
  static constexpr std::string_view kFormat = "cluster $tiles{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: so many tiles beside each other along the rows run together and share what they "
      "load.";
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
  static constexpr std::string_view kDoc = "Form tile: so many tiles share a multiprocessor.";
  ir::OptionalInt tiles;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tiles", s.tiles);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// --- the loop over the steps

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

// --- tiles and who works on them

enum class GroupKind : uint8_t { Sharing, Alternating };
const std::vector<std::string_view>& words(GroupKind);

struct Groups {
  static constexpr std::string_view kFormat = "groups $count $kind{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: warp groups of a CTA that compute. sharing: each has some rows of the same tile. "
      "alternating: each has tiles of its own, and they take turns at the matrix unit. Form rows: "
      "groups that share a row.";
  ir::OptionalInt count;
  GroupKind kind = GroupKind::Sharing;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("count", s.count);
    f("kind", s.kind);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class OrderKind : uint8_t { Plain, Raster, Longest };
const std::vector<std::string_view>& words(OrderKind);

struct TileOrder {
  static constexpr std::string_view kFormat =
      "order $kind{ by $rows}{ sections $section_mib}{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: the order in which CTAs take tiles. plain: the last axis fastest. raster by N: N "
      "rows of tiles are walked column by column. longest: tiles with the most steps first; the "
      "other axes in sections whose shared operands take so many MiB.";
  OrderKind kind = OrderKind::Plain;
  ir::OptionalInt rows;
  ir::OptionalInt section_mib;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("kind", s.kind);
    f("rows", s.rows);
    f("section_mib", s.section_mib);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class SourceKind : uint8_t { Static, Dynamic };
const std::vector<std::string_view>& words(SourceKind);

struct TileSource {
  static constexpr std::string_view kFormat = "source $kind{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: a CTA computes which tiles are its own (static), or takes the next one from a "
      "counter in memory (dynamic).";
  SourceKind kind = SourceKind::Static;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("kind", s.kind);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// --- operands and results

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

enum class Moment : uint8_t { Early, Late };
const std::vector<std::string_view>& words(Moment);

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

// --- roles

struct Registers {
  static constexpr std::string_view kFormat = "registers{ compute $compute}{ load $load}{ $by}";
  static constexpr std::string_view kDoc =
      "Registers of a thread of the warp groups that compute, and, form tile, of the loader warps; "
      "multiples of 8.";
  ir::OptionalInt compute;
  ir::OptionalInt load;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("compute", s.compute);
    f("load", s.load);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Turns {
  static constexpr std::string_view kFormat = "turns $use{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: warp groups that share a tile take turns at issuing their products.";
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct InFlight {
  static constexpr std::string_view kFormat = "in_flight $products{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: products of earlier steps that may be under way when a step issues its own (0 or "
      "1).";
  ir::OptionalInt products;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("products", s.products);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Takes {
  static constexpr std::string_view kFormat = "takes $moment{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: tiles that element-wise work takes from shared memory are taken while products "
      "run (early), or where they are used (late).";
  Moment moment = Moment::Early;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("moment", s.moment);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Branches {
  static constexpr std::string_view kFormat = "branches $moment{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: rare branches of a step stand behind the work that does not need them (late), or "
      "where their value is computed (early).";
  Moment moment = Moment::Early;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("moment", s.moment);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Hoist {
  static constexpr std::string_view kFormat = "hoist $columns{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: work that depends on the column alone is done once for all rows in tiles of at "
      "most so many columns; 0: nowhere.";
  ir::OptionalInt columns;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("columns", s.columns);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// --- rows and points

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

struct Vector {
  static constexpr std::string_view kFormat = "vector $elements{ $by}";
  static constexpr std::string_view kDoc =
      "Form rows: neighbouring elements that a thread loads at once. The kernel runs for rows of "
      "whole vectors; with 1 it takes tensors of any alignment.";
  ir::OptionalInt elements;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("elements", s.elements);
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
      "Forms points and parts: lanes of a warp that share the loops of a point; a power of two.";
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
      "Forms points and parts: neighbouring points of a thread. Form rows, for reductions over "
      "several axes: rows that a step loads at once.";
  ir::OptionalInt points;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("points", s.points);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Threads {
  static constexpr std::string_view kFormat = "threads $count{ $by}";
  static constexpr std::string_view kDoc =
      "Forms points and parts: threads of a CTA; a multiple of a warp.";
  ir::OptionalInt count;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("count", s.count);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// What lines of a schedule are about; a schedule prints those of a kernel that have one topic on
// one line.
enum class Topic : uint8_t { Program, Members, Sizes, Loop, Operands, Grid, Roles };
Topic topic(const ir::OpInfo& decision);

// All decisions, in the order in which schedules print them.
const std::vector<const ir::OpInfo*>& vocabulary();

// The lines that the passes of a kernel have still to read.
struct Decisions {
  static constexpr std::string_view kFormat = "decisions$body";
  static constexpr std::string_view kDoc =
      "Lines of the kernel's schedule that its passes have still to read, one decision each "
      "(`nautilus print --ops decisions`).";
  ir::Block body;
  static void fields(auto& s, auto&& f) { f("body", s.body); }
  static const ir::OpInfo& info();
  static const std::vector<const ir::OpInfo*>& vocabulary() { return decision::vocabulary(); }
};

enum class Form : uint8_t { Tile, Rows, Points, Parts };
const std::vector<std::string_view>& words(Form);

// A kernel and what was decided about it: in a list of what passes decided, and in scheduled
// programs for kernels of other forms than tile, whose statements are no nests of their own. Of
// several with one name each is an alternative.
struct Kernel {
  static constexpr std::string_view kFormat = "kernel $name $form$body";
  static constexpr std::string_view kDoc =
      "A kernel, named after the statement that it was grown from, its form, and its decisions.";
  ir::Name name;
  Form form = Form::Tile;
  ir::Block body;
  // In a list of what passes decided: what the kernel is called in the MA-tile program. No part of
  // the text.
  ir::Name made = {};
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("form", s.form);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
  static const std::vector<const ir::OpInfo*>& vocabulary() { return decision::vocabulary(); }
};

// Who took the decision; any op of the vocabulary.
By by(const ir::Op& decision);
ir::Op with_by(const ir::Op& decision, By by);

}  // namespace nautilus::decision
