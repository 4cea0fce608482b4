// SPDX-License-Identifier: Apache-2.0
// A trace, read by program and by kernel: which passes changed it, and how.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/pass.h"

namespace nautilus::compile {

struct PassStep {
  std::string_view pass;  // of the table; `input`: the program as it was loaded
  std::string file;       // the file of the program after it in a folder of dumps (dump.h)
  std::string change;     // in a line (change_text.h)
  std::string before;     // as text; empty where the pass comes from another level
  std::string after;
};

struct KernelSteps {
  std::string kernel;
  std::vector<PassStep> steps;
};

// The steps of the whole program, with the plan and with kernels without their bodies.
std::vector<PassStep> program_steps(const ir::Program& loaded, const ir::PassTrace& trace);

// The steps of each kernel: those in which it is a program of its own, and those of the whole
// program that made it or changed it. In the order of the program. Together with those of the
// program they are all of the trace.
std::vector<KernelSteps> kernel_steps(const ir::Program& loaded, const ir::PassTrace& trace,
                                      const ir::Program& kernels);

}  // namespace nautilus::compile
