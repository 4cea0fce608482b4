// SPDX-License-Identifier: Apache-2.0
// Runs one case of a text test. test_case.cc finds its command; program_cases.cc has those that
// compare texts of programs, schedule_cases.cc those about schedules, value_cases.cc those that
// compute.
#pragma once

#include <string>
#include <utility>

#include "driver/check/test_case.h"
#include "driver/load/load.h"

namespace nautilus::driver {

class CaseRunner {
 public:
  CaseRunner(TestCase test, const std::string& file_name, RunsOn on)
      : test_(std::move(test)), file_(file_name), on_(on) {
    if (const auto costs = test_.options.extract("costs"); !costs.empty())
      costs_option_ = costs.mapped();
  }

  CaseResult run();

 private:
  static CaseResult failed(std::string message) { return {false, "", std::move(message), false}; }
  static CaseResult shown(std::string output) { return {true, std::move(output), "", true}; }
  std::string rendered() const;
  // Of the case's options and expectation, which not every command takes; empty if there is none.
  std::string misuse() const;

  // --- programs (program_cases.cc)
  // Printing is the identity on what was printed: checked on every program any test reads.
  std::string roundtrip(const ir::Program& program);
  static std::string strip_comments(std::string_view text);
  CaseResult lower(const ir::Program& program, const std::string& level);
  CaseResult passes(const ir::Program& program);
  // False if there is no such pass (`error` says so), or if a pass reported something.
  bool run_passes(std::string_view names, ir::Program& program, ir::PassContext& context,
                  std::string& error);
  // The program after the passes of the option `pass` equals that of another file except for names.
  CaseResult like(const ir::Program& program);
  CaseResult graph(const ir::Program& program);
  CaseResult emit_case(const ir::Program& program);
  CaseResult resources(const ir::Program& program);
  CaseResult diag();
  // `#~ E0702 text` on a line: that line must be rejected with this message. No annotation: the
  // program must verify.
  CaseResult verify_case();

  // --- schedules (schedule_cases.cc) The input is a schedule; the argument names the kernel to
  // compare with.
  CaseResult regenerate();
  // The input is a schedule with holes; the argument names its program.
  CaseResult fill();
  // The input is a schedule, perhaps of some kernels; the argument names its program.
  CaseResult replay_case();
  // The input is a schedule; which kernels of its plan run at sizes, and whether they are right.
  CaseResult launches();
  CaseResult sweep_case(const ir::Program& program);
  // The derivation, or what the passes did. The two are separate, so that a change of one does not
  // break tests of the other.
  CaseResult explain_case(const ir::Program& program);
  // The first lines of explain, at the hints.
  CaseResult summary(const ir::Program& program);
  // Warnings about what is far slower than necessary.
  CaseResult warnings(const ir::Program& program);
  CaseResult schedule(const ir::Program& program);
  std::string with_or_without_cycles(std::string text) const;

  // --- values (value_cases.cc)
  CaseResult eval(const ir::Program& program);
  CaseResult ladder(const ir::Program& program);
  // The program, after the passes of the option `pass`, against the oracle named by the argument.
  CaseResult check(const ir::Program& program);
  CaseResult kernels(const ir::Program& program);
  // The rules fire, and the resulting kernels are right.
  CaseResult fires(const ir::Program& program);

  TestCase test_;
  std::string costs_option_;  // predicted cycles are hidden unless a test is about them
  const std::string& file_;
  const RunsOn on_;
  mutable Unit unit_;
};

}  // namespace nautilus::driver
