// SPDX-License-Identifier: Apache-2.0
// From an MA-tile program to machine code: emission, NVRTC, the disk cache, and the check that
// rejects kernels with serialised matrix work.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "plan/edited_sources.h"
#include "runtime/machine_loops.h"
#include "runtime/nvrtc.h"

namespace nautilus::plan {

struct DeviceKernel {
  emit::KernelText text;
  std::string source;  // the whole file
  std::string cubin;
  runtime::PtxasReport report;
  std::vector<runtime::MachineLoop> spilling_loops;  // those that touch spilled registers
  bool is_cached = false;
};

// Kernels of the program for `architecture`, compiled in parallel. Empty (and why) if one does not
// compile or is rejected. `use_cache`: look on disk first, and keep what was compiled there.
std::optional<std::vector<DeviceKernel>> compile_device(const ir::Program& program,
                                                        expr::ExprPool& pool,
                                                        const std::string& architecture,
                                                        bool use_cache, std::string* error);
// The same with hand-edited files in place of what would be emitted (edited_sources.h). Parameters,
// threads and shared memory are the program's.
std::optional<std::vector<DeviceKernel>> compile_edited(const ir::Program& program,
                                                        expr::ExprPool& pool,
                                                        const EditedSources& sources,
                                                        const std::string& architecture,
                                                        bool use_cache, std::string* error);
// One kernel from its `source`.
bool compile_source(DeviceKernel& kernel, const std::string& architecture, bool use_cache,
                    std::string* error);

// Why a kernel must not be used: an advisory of the assembler that means serialised matrix work.
std::string rejection(const DeviceKernel& kernel);
// What a schedule's author, or a search, should know: a loop that feeds the tensor cores spends
// more than kMaxSpillShare of its instructions on spilled registers. The kernel is right but slow,
// so a program without another kernel still runs it; golden kernels must not have this warning.
// Empty if there is none: outside such loops a few bytes cost nothing.
std::string spill_warning(const DeviceKernel& kernel);

// Measured: attention of head size 64 in tiles of 256 x 64 is the fastest form at 16k keys with
// 11 of 431 instructions, 2.6 %.
inline constexpr double kMaxSpillShare = 0.05;

}  // namespace nautilus::plan
