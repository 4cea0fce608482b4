// SPDX-License-Identifier: Apache-2.0
#include "runtime/disassemble.h"

#include <fmt/format.h>

#include "runtime/cuda_tool.h"

namespace nautilus::runtime {

std::optional<std::string> disassemble(const std::string& cubin, std::string* error) {
  const std::string tool = find_cuda_tool("nvdisasm");
  if (tool.empty()) {
    *error =
        "there is no `nvdisasm` here; it comes with the CUDA toolkit (package cuda-nvdisasm): put "
        "it on the path, or set CUDA_HOME";
    return std::nullopt;
  }
  const TemporaryFile file(cubin);
  if (!file.is_written()) {
    *error = "cannot write a temporary file for nvdisasm";
    return std::nullopt;
  }
  return run_cuda_tool(fmt::format("'{}' -c {} 2>&1", tool, file.path()), error);
}

}  // namespace nautilus::runtime
