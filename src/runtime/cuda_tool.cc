// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_tool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace nautilus::runtime {

std::string find_cuda_tool(const std::string& name) {
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
    const std::string tool = fmt::format("{}/{}", folder, name);
    if (access(tool.c_str(), X_OK) == 0) return tool;
  }
  return "";
}

std::optional<std::string> run_cuda_tool(const std::string& command, std::string* error) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) {
    *error = fmt::format("{} cannot be started", command);
    return std::nullopt;
  }
  std::string text;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  if (pclose(pipe) == 0) return text;
  *error = fmt::format("{}: {}", command, text);
  return std::nullopt;
}

TemporaryFile::TemporaryFile(const std::string& content) {
  const int file = mkstemp(path_);
  if (file < 0) return;
  is_written_ = write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  close(file);
}

TemporaryFile::~TemporaryFile() { unlink(path_); }

}  // namespace nautilus::runtime
