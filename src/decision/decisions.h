// SPDX-License-Identifier: Apache-2.0
// Decisions: every choice that can change the speed of a kernel, as a line of text.
//
//   loop down                           steps from the last to the first
//   groups 2 alternating                two warp groups, each with tiles of its own
//   ring K slots 3 loader 0             a ring of three slots for K, filled by loader warp 0
//
// The same lines are in schedules (`.sched` files) and, in programs of all levels, in the
// `decisions` block of a kernel, which has the lines that its passes have still to read. A pass
// reads its line or refuses it; where a line is missing, the pass follows its own rule. In both
// cases it notes the decision (lines.h), so that a schedule can be printed with all of them.
//
// The doc of a decision gives the units of its numbers. Operands and results are named by their
// tensors; the second place of a tensor K in a kernel is K.2, the third K.3.
//
// Headers named after what lines are about (`loop_lines.h`, ...) define them; this one includes
// all.
#pragma once

#include "decision/grid_lines.h"
#include "decision/launch_lines.h"
#include "decision/loop_lines.h"
#include "decision/member_lines.h"
#include "decision/operand_lines.h"
#include "decision/program_lines.h"
#include "decision/role_lines.h"
#include "decision/row_and_point_lines.h"
#include "decision/shared_words.h"
#include "decision/size_lines.h"
#include "ir/op.h"

namespace nautilus::decision {

// What lines of a schedule are about; a schedule prints those of a kernel that have one topic on
// one line.
enum class Topic : uint8_t { Program, Members, Sizes, Loop, Operands, Grid, Roles };
Topic topic(const ir::OpInfo& decision);

// All decisions, in the order in which schedules print them.
const std::vector<const ir::OpInfo*>& vocabulary();

// Of a kernel that has alternatives: what is predicted of it. No choice, so no line of a schedule.
struct Cost {
  static constexpr std::string_view kFormat = "cost $cycles";
  static constexpr std::string_view kDoc =
      "Predicted cycles of a kernel of tiles; of grids that stand behind each other, have a cost "
      "and write the same, a kernel plan runs the cheapest alone.";
  ir::Expr cycles;
  static void fields(auto& s, auto&& f) { f("cycles", s.cycles); }
  static const ir::OpInfo& info();
};

// The decisions, and what else stands among the lines of a kernel.
const std::vector<const ir::OpInfo*>& kernel_vocabulary();

// The lines that the passes of a kernel have still to read.
struct Decisions {
  static constexpr std::string_view kFormat = "decisions$body";
  static constexpr std::string_view kDoc =
      "Lines of the kernel's schedule that its passes have still to read, one decision each "
      "(`nautilus print --ops decisions`), and the predicted cost of one that has alternatives.";
  ir::Block body;
  static void fields(auto& s, auto&& f) { f("body", s.body); }
  static const ir::OpInfo& info();
  static const std::vector<const ir::OpInfo*>& vocabulary() { return kernel_vocabulary(); }
};

enum class Form : uint8_t { Tile, Rows, Points, Parts, Scatter, Sort };
const std::vector<std::string_view>& words(Form);

// A kernel and the decisions about it. Used in the list of what passes decided, and in scheduled
// programs for kernels of forms other than tile: their statements do not form one nest. Several ops
// with one name are alternatives.
struct Kernel {
  static constexpr std::string_view kFormat = "kernel $name $form$body";
  static constexpr std::string_view kDoc =
      "A kernel, named after the statement that it was grown from, its form, and its decisions.";
  ir::Name name;
  Form form = Form::Tile;
  ir::Block body;
  // In the list of what passes decided: the kernel's name in the MA-tile program, and those of
  // kernels in front of it that it needs. Not printed.
  ir::Name made = {};
  ir::Names front = {};
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("form", s.form);
    f("body", s.body);
  }
  static const ir::OpInfo& info();
  static const std::vector<const ir::OpInfo*>& vocabulary() { return decision::vocabulary(); }
};

// Who made the decision; any op of the vocabulary.
By by(const ir::Op& decision);
ir::Op with_by(const ir::Op& decision, By by);
// Who made it; a rule, if the line does not say.
By by_of(const ir::Op& decision);

}  // namespace nautilus::decision
