// SPDX-License-Identifier: Apache-2.0
// Warnings about cliffs: a program is right, but far slower than its mathematics requires. Each
// kind has a code, says where and how much, and names a cure.
#pragma once

#include "driver/report/program_facts.h"
#include "target/target.h"

namespace nautilus::driver {

struct WarningRequest {
  double intermediate_bytes = 0;  // a larger one is reported; 0: the target's threshold
  // Whether to look for sizes that would allow more fusion if they were static. That needs one more
  // compilation, and another for each size with a possible gain.
  bool tries_static = false;
};

// Reports warnings about the kernels that `program` became, W0101 to W0105. Those that depend on
// sizes are left out where a size has no hint, or all are small (has_sizes_that_matter).
void report_warnings(const ir::Program& program, const Kernels& kernels,
                     const WarningRequest& request, Unit& unit);

// W0105: sizes that would make fewer launches if they were static.
void report_static_fusion(const ir::Program& program, const ProgramFacts& facts, Unit& unit);

// W0106: machine code of a kernel that does not fit the instruction caches.
struct CodeSize {
  std::string kernel;
  std::string statement;  // the statement it computes; empty if unknown
  size_t bytes = 0;
};
void report_large_kernels(const ir::Program& program, const std::vector<CodeSize>& kernels,
                          Unit& unit);

// Whether sizes are known, and so large that the machine works for longer than a launch takes:
// small hints, as in tests, say nothing about speed.
bool has_sizes_that_matter(const ProgramFacts& facts, const target::Target& target);

// The equation of the program that a statement was made of, the first one if that is not known: its
// place and its name.
diag::Span place_of(const ir::Program& program, std::string_view statement);
std::string equation_of(const ir::Program& program, std::string_view statement);

}  // namespace nautilus::driver
