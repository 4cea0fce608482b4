// SPDX-License-Identifier: Apache-2.0
// Runs passes. All code runs passes through this file, so that a trace sees all of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/algebra.h"
#include "compile/passes.h"

namespace nautilus::compile {

// Runs one pass. If it changed the program and there is a trace, the trace gets a step; `label`
// names the step if the pass's name is not unique (`merge_equal 2`).
std::optional<ir::Program> apply(const PassInfo& pass, const ir::Program& program,
                                 ir::PassContext& context, std::string label = {});

// Also verifies the result: one that does not verify is a compiler bug. Refuses a program of
// another level.
std::optional<ir::Program> run_pass(const PassInfo& pass, const ir::Program& program,
                                    ir::PassContext& context, std::string label = {});

// Adds a step for a pass of the table that needs more than a program.
void trace(const PassInfo& pass, const ir::Program& program, ir::PassContext& context,
           std::string label = {}, double ms = 0);

// Drops the steps of an attempt unless the attempt is kept.
class TraceAttempt {
 public:
  explicit TraceAttempt(ir::PassContext& context)
      : trace_(context.trace), begin_(trace_ ? trace_->steps.size() : 0) {}
  ~TraceAttempt() {
    if (trace_ && !is_kept_)
      trace_->steps.erase(trace_->steps.begin() + static_cast<std::ptrdiff_t>(begin_),
                          trace_->steps.end());
  }
  TraceAttempt(const TraceAttempt&) = delete;
  TraceAttempt& operator=(const TraceAttempt&) = delete;

  void keep() { is_kept_ = true; }

 private:
  ir::PassTrace* trace_;
  size_t begin_;
  bool is_kept_ = false;
};

// The passes on level spec that scheduling runs, in order.
std::vector<std::string_view> algebra_sequence(Algebra algebra = {});
// From level spec to an unscheduled scalar program, by the algebra passes: the input of scheduling.
// A program that comes from one of them (`after`) continues after that pass.
std::optional<ir::Program> lower_with_algebra(const ir::Program& program, ir::PassContext& context,
                                              Algebra algebra = {});

// The same, remembering the program and the decisions after each pass: forms of the algebra have
// most of their passes in common. Belongs to one pool of expressions.
class LoweredForms {
 public:
  std::optional<ir::Program> get(const ir::Program& program, ir::PassContext& context,
                                 Algebra algebra = {});
  // Whether the pass, one of those of the form, changes the program.
  bool changes(std::string_view pass, const ir::Program& program, ir::PassContext& context,
               Algebra algebra = {});

 private:
  struct Step {
    ir::Program program;
    ir::Block decided;
  };
  struct OfProgram {
    ir::Program program;
    std::map<std::vector<std::string_view>, Step> after;  // these passes
  };
  std::vector<OfProgram> programs_;
};

// The path without a schedule: from level spec only the exact passes, then one nest per equation,
// and a kernel for every nest. From levels vrtile and matile: the kernels (compile/kernels.h).
std::optional<ir::Program> lower_to(std::string_view level, const ir::Program& program,
                                    ir::PassContext& context);

// Whether a program's `after` names a pass that programs of its level come from; reported if not.
bool verify_after(const ir::Program& program, diag::Sink& sink);

// The `after` of a program that a pass made from `before`: empty if the place of `before` is
// unknown.
std::string label_after(const ir::Program& before, const PassInfo& pass);

// The program as if a person had written it.
ir::Program without_after(ir::Program program);

}  // namespace nautilus::compile
