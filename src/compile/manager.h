// SPDX-License-Identifier: Apache-2.0
// Running passes: everything that runs one runs it here, so that a trace sees all of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/algebra.h"
#include "compile/passes.h"

namespace nautilus::compile {

// Runs one pass. If it changed the program and somebody looks, the trace gets a step; `label` says
// where on the way that is if the pass's name does not (`merge_equal 2`).
std::optional<ir::Program> apply(const PassInfo& pass, const ir::Program& program,
                                 ir::PassContext& context, std::string label = {});

// Also verifies the result: one that does not verify is a compiler bug. Refuses a program of
// another level.
std::optional<ir::Program> run_pass(const PassInfo& pass, const ir::Program& program,
                                    ir::PassContext& context, std::string label = {});

// The step of something that is a pass of the table but no function of a program alone.
void trace(const PassInfo& pass, const ir::Program& program, ir::PassContext& context,
           std::string label = {}, double ms = 0);

// Forgets the steps of an attempt that was given up, unless it is kept.
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
// From level spec to an unscheduled scalar program, by way of the algebra passes: what scheduling
// starts from. A program that comes from one of them (`after`) goes on behind it.
std::optional<ir::Program> lower_with_algebra(const ir::Program& program, ir::PassContext& context,
                                              Algebra algebra = {});

// The same, remembering programs after each pass, and what it decided: forms of the algebra have
// most of their passes in common. Belongs to one pool of expressions.
class LoweredForms {
 public:
  std::optional<ir::Program> get(const ir::Program& program, ir::PassContext& context,
                                 Algebra algebra = {});
  // Whether the pass, one of those that the form has, does something to the program.
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

// The way without a schedule: from level spec the exact passes alone, then one nest per equation,
// and every nest a kernel. From levels vrtile and matile: the kernels (compile/kernels.h).
std::optional<ir::Program> lower_to(std::string_view level, const ir::Program& program,
                                    ir::PassContext& context);

// Whether a program's `after` names a pass that programs of its level come from; reported if not.
bool verify_after(const ir::Program& program, diag::Sink& sink);

// What a program comes from that a pass made of `before`: empty if nobody knows where that stood.
std::string label_after(const ir::Program& before, const PassInfo& pass);

// The program as if somebody had written it.
ir::Program without_after(ir::Program program);

}  // namespace nautilus::compile
