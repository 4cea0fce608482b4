// SPDX-License-Identifier: Apache-2.0
// CUDA C++ to machine code in this process, by the NVRTC library found at run time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/ptxas_report.h"

namespace nautilus::runtime {

struct CompiledKernel {
  std::string cubin;
  std::string log;     // compiler and assembler messages
  PtxasReport report;  // of the log
};

// Where the library was found and its version; empty (and why in `error`) if there is none.
struct NvrtcInfo {
  std::string library;
  int major;
  int minor;
};
std::optional<NvrtcInfo> nvrtc_info(std::string* error);

// Compiles one translation unit for `architecture` ("sm_90a"). Safe to call from several threads.
// The error text holds the compiler's messages.
std::optional<CompiledKernel> compile_cuda(const std::string& source, const std::string& file_name,
                                           const std::string& architecture,
                                           const std::vector<std::string>& options,
                                           std::string* error);

// The assembler text (PTX) instead, for the virtual architecture of the same number.
std::optional<std::string> compile_ptx(const std::string& source, const std::string& file_name,
                                       const std::string& architecture, std::string* error);

}  // namespace nautilus::runtime
