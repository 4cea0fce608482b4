// SPDX-License-Identifier: Apache-2.0
// Machine code as text, by the disassembler of a CUDA toolkit where one is installed.
#pragma once

#include <optional>
#include <string>

namespace nautilus::runtime {

// Instructions of a cubin. Empty (and why) if there is no `nvdisasm` on the path, below CUDA_HOME
// or below /usr/local/cuda, or if it fails.
std::optional<std::string> disassemble(const std::string& cubin, std::string* error);

}  // namespace nautilus::runtime
