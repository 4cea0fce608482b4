// SPDX-License-Identifier: Apache-2.0
// --warn and --large-intermediate, in every command that says where a program is slow.
#pragma once

#include "command.h"
#include "driver/kernels/lower_to_kernels.h"

namespace nautilus::tool {

struct WarnOption {
  std::string mode = "on";
  double intermediate_mb = 0;

  bool is_on() const { return mode != "off"; }
};

void add_warn_option(CLI::App& command, WarnOption& o);

// Reports what is slow about the kernels of a program at its hints (driver/report/warnings.h).
void warn(const ir::Program& program, const driver::Kernels& kernels, const WarnOption& o,
          bool tries_static, driver::Unit& unit);

// Whether --warn error turns what was reported into a failure; says so.
bool is_failure(const WarnOption& o, const driver::Unit& unit);

}  // namespace nautilus::tool
