// SPDX-License-Identifier: Apache-2.0
// Programs of the CUDA toolkit that are run, not linked: their paths, and temporary files for them.
#pragma once

#include <optional>
#include <string>

namespace nautilus::runtime {

// Its path, from CUDA_HOME, CUDA_PATH, the path and the usual folder; empty if it is not found.
std::string find_cuda_tool(const std::string& name);

// What the command prints, errors among it, or nothing, and why.
std::optional<std::string> run_cuda_tool(const std::string& command, std::string* error);

// A file for as long as this object lives. Its name has no characters that a shell would read.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool is_written() const { return is_written_; }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/nautilus-cubin-XXXXXX";
  bool is_written_ = false;
};

}  // namespace nautilus::runtime
