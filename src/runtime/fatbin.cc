// SPDX-License-Identifier: Apache-2.0
#include "runtime/fatbin.h"

#include <fmt/format.h>

#include "base/files.h"
#include "runtime/cuda_tool.h"

namespace nautilus::runtime {

std::optional<std::string> make_fatbin(const std::string& cubin, const std::string& ptx,
                                       const std::string& architecture, std::string* error) {
  const std::string tool = find_cuda_tool("fatbinary");
  if (tool.empty()) {
    *error =
        "there is no `fatbinary` here; it comes with the CUDA toolkit (package cuda-nvcc): put it "
        "on the path, or set CUDA_HOME";
    return std::nullopt;
  }
  const TemporaryFile code(cubin);
  const TemporaryFile text(ptx);
  const TemporaryFile result("");
  if (!code.is_written() || !text.is_written() || !result.is_written()) {
    *error = "cannot write a temporary file for fatbinary";
    return std::nullopt;
  }
  const std::string number = architecture.substr(architecture.find('_') + 1);
  const std::string command = fmt::format(
      "'{0}' -64 --create={1} --image3=kind=elf,sm={2},file={3} --image3=kind=ptx,sm={2},file={4} "
      "2>&1",
      tool, result.path(), number, code.path(), text.path());
  if (!run_cuda_tool(command, error)) return std::nullopt;
  return base::read_file(result.path(), error);
}

}  // namespace nautilus::runtime
