// SPDX-License-Identifier: Apache-2.0
#include "runtime/disassemble.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/files.h"

namespace nautilus::runtime {
namespace {

std::string find_disassembler() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable)) folders.push_back(fmt::format("{}/bin", root));
  }
  std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    const std::string tool = folder + "/nvdisasm";
    if (access(tool.c_str(), X_OK) == 0) return tool;
  }
  return "";
}

// A file for as long as this object lives.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    const int file = mkstemp(path_);
    if (file < 0) return;
    is_written_ =
        write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    close(file);
  }
  ~TemporaryFile() { unlink(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool is_written() const { return is_written_; }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/nautilus-cubin-XXXXXX";
  bool is_written_ = false;
};

}  // namespace

std::optional<std::string> disassemble(const std::string& cubin, std::string* error) {
  const std::string tool = find_disassembler();
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
  // Neither name has characters that a shell would read: one is quoted, the other made here.
  const std::string command = fmt::format("'{}' -c {} 2>&1", tool, file.path());
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) {
    *error = fmt::format("{} cannot be started", tool);
    return std::nullopt;
  }
  std::string text;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  if (pclose(pipe) == 0) return text;
  *error = fmt::format("{}: {}", tool, text);
  return std::nullopt;
}

}  // namespace nautilus::runtime
