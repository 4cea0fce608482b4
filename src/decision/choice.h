// SPDX-License-Identifier: Apache-2.0
// One decision about the kernel that a pass works on: what its line asks for, and what the pass
// did.
//
//   Choice<Segments> choice(context);
//   choice.begin(body);                          takes the line out of the kernel's body
//   const bool use = choice.asks([](const Segments& s) { return s.use == Switch::On; }, rule);
//   choice.took({use ? Switch::On : Switch::Off});    where there was something to decide
//   if (!choice.end("no mask ...")) return nothing;   notes it, or refuses a line without effect
#pragma once

#include <algorithm>

#include "decision/lines.h"

namespace nautilus::decision {

template <class D>
class Choice {
 public:
  explicit Choice(ir::PassContext& context) : context_(context) {}

  void begin(ir::Block& body) {
    lines_ = take<D>(body);
    taken_.reset();
    is_refused_ = false;
  }

  // The line that was written; null: the pass's rule decides.
  const D* asked() const { return lines_.empty() ? nullptr : &lines_[0].template as<D>(); }

  // What the pass did, where the kernel left it a choice. The last one counts.
  void took(D decision) { taken_ = decision; }

  // The line repeats what holds without it.
  void drop() { lines_.clear(); }

  // The line cannot be followed.
  void refuse(std::string_view why) {
    if (lines_.empty() || is_refused_) return;
    is_refused_ = true;
    decision::refuse(lines_[0], why, context_);
  }

  // Notes the decision. False if the line was refused. A line is also refused if it is written
  // twice, and, with the reason `why_none`, where the kernel leaves no choice.
  bool end(std::string_view why_none) {
    if (lines_.size() > 1) {
      decision::refuse(lines_[1], "the kernel has another line of this kind", context_);
      return false;
    }
    if (!taken_) refuse(why_none);
    if (is_refused_) return false;
    if (taken_) note(with_by(ir::make(*taken_), asked() ? asked()->by : By::Auto), context_);
    return true;
  }

 private:
  ir::PassContext& context_;
  ir::Block lines_;
  std::optional<D> taken_;
  bool is_refused_ = false;
};

// The same for decisions with a line for each operand.
template <class D>
class OperandChoice {
 public:
  explicit OperandChoice(ir::PassContext& context) : context_(context) {}

  void begin(ir::Block& body) {
    lines_ = take<D>(body);
    taken_.clear();
    is_refused_ = false;
  }

  // The line of the operand; null: the pass's rule decides.
  const D* asked(ir::Name operand) const {
    for (const ir::Op& line : lines_) {
      if (line.as<D>().operand == operand) return &line.as<D>();
    }
    return nullptr;
  }

  const ir::Block& lines() const { return lines_; }

  // What the pass did for the operand; the last one counts.
  void took(D decision) {
    const D* line = asked(decision.operand);
    decision.by = line ? line->by : By::Auto;
    std::erase_if(taken_, [&](const D& d) { return d.operand == decision.operand; });
    taken_.push_back(decision);
  }

  void refuse(ir::Name operand, std::string_view why) {
    for (const ir::Op& line : lines_) {
      if (line.as<D>().operand != operand) continue;
      is_refused_ = true;
      return decision::refuse(line, why, context_);
    }
  }

  bool end(std::string_view why_none) {
    for (size_t k = 0; k < lines_.size(); ++k) {
      const ir::Name operand = lines_[k].as<D>().operand;
      const bool is_taken = std::any_of(taken_.begin(), taken_.end(),
                                        [&](const D& d) { return d.operand == operand; });
      const bool is_first = asked(operand) == &lines_[k].as<D>();
      if (is_taken && is_first) continue;
      is_refused_ = true;
      decision::refuse(lines_[k], is_first ? why_none : "the operand has another line", context_);
    }
    if (is_refused_) return false;
    for (const D& d : taken_) note(ir::make(d), context_);
    return true;
  }

 private:
  ir::PassContext& context_;
  ir::Block lines_;
  std::vector<D> taken_;
  bool is_refused_ = false;
};

}  // namespace nautilus::decision
