// SPDX-License-Identifier: Apache-2.0
// What the assembler says about a kernel: registers, spills, and the advisories that mean lost
// speed.
//
// An advisory of the family C75xx (matrix instructions serialised, set-max-register ignored, ...)
// makes a kernel slow in a way that no later measurement explains, so the compiler rejects such a
// kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nautilus::runtime {

struct KernelUse {
  std::string name;
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
};

struct PtxasReport {
  std::vector<KernelUse> kernels;
  std::vector<std::string> advisories;  // whole lines that carry a code C75xx
};

PtxasReport parse_ptxas_report(std::string_view log);

}  // namespace nautilus::runtime
