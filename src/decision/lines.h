// SPDX-License-Identifier: Apache-2.0
// How passes read the lines of a kernel.
//
//   LoopOrder order = kernel_lines.take<LoopOrder>() or else by rule
//
// A line is read exactly once: `take` removes it from the kernel's `decisions` block, so that a
// line that is left when a kernel is finished has not been read.
#pragma once

#include <optional>
#include <vector>

#include "decision/decisions.h"
#include "ir/pass.h"

namespace nautilus::decision {

// The lines of a kernel's body that still have to be read; empty if there are none.
const ir::Block& lines(const ir::Block& body);
// The body with these lines instead of its own, first in it.
ir::Block with_lines(ir::Block body, const ir::Block& lines);

template <class D>
const ir::Op* find(const ir::Block& body) {
  for (const ir::Op& op : lines(body)) {
    if (op.is<D>()) return &op;
  }
  return nullptr;
}

// What is predicted of the kernel; null if nothing is.
ir::Expr cost_of(const ir::Block& body);

// All lines of one kind, which the body then no longer has.
template <class D>
ir::Block take(ir::Block& body) {
  ir::Block taken;
  ir::Block rest;
  for (const ir::Op& op : lines(body)) (op.is<D>() ? taken : rest).push_back(op);
  if (!taken.empty()) body = with_lines(std::move(body), rest);
  return taken;
}

// Whether passes over equations read it: a line about operands, chunks or pieces.
bool is_about_equations(const ir::Op& line);

// Whether it is followed before there is a kernel: it is about the program, or says which
// statements, tiles, parts and live steps the nest has.
bool is_about_nest(const ir::Op& line);
// Such a line of a user stays with the nest, for messages. Lowering has no use for it: the body
// then no longer has them.
bool is_kept_for_messages(const ir::Op& line);
void take_followed(ir::Block& body);

// The lines that somebody wrote: those of a user, or, where there are none, tuned ones.
ir::Block written(const ir::Block& lines);

// Whether two decisions are of one kind and about the same operand, axis or statement.
bool is_about_the_same(const ir::Op& a, const ir::Op& b);

// Notes the decision in the context; it replaces an earlier one about the same.
void note(const ir::Op& decision, ir::PassContext& context);

// The same for all decisions about a kernel; `made` is its name in the MA-tile program.
void note_kernel(ir::Name name, Form form, const ir::Block& decided, ir::Name made,
                 ir::PassContext& context);

// A kernel in front of one that was noted, which belongs to it; both by their names in the MA-tile
// program.
void note_front(ir::Name made, ir::Name front, ir::PassContext& context);

// One more decision about a kernel that was noted; `made` is its name in the MA-tile program.
void note_of(ir::Name made, const ir::Op& decision, ir::PassContext& context);

// Lines that passes over all kernels of a program read (decision/launch_lines.h).
bool is_read_last(const ir::Op& line);
// All of them, which the body then no longer has.
ir::Block take_read_last(ir::Block& body);

// The message for a refused line: the line and the reason.
std::string refusal(const ir::Op& line, std::string_view why);

// The same for a reason that several lines have together.
std::string refusal(const ir::Block& lines, std::string_view why);

// Reports that a line is refused.
void refuse(const ir::Op& line, std::string_view why, ir::PassContext& context);

// Refuses all these lines for the same reason. True if there were none.
bool refuse_all(const ir::Block& lines, std::string_view why, ir::PassContext& context);

// Refuses the lines that the passes of a finished kernel have not read, but for those that are
// read last. True if there were none.
bool refuse_unread(const ir::Block& body, ir::PassContext& context);

}  // namespace nautilus::decision
