// SPDX-License-Identifier: Apache-2.0
// A library found at run time. CUDA is used only through this, so that the tool builds and runs
// without it.
#pragma once

#include <string>
#include <vector>

namespace nautilus::runtime {

class SharedLibrary {
 public:
  // Opens the first of `names` that the loader finds. On failure is_open() is false and error()
  // says what was tried.
  explicit SharedLibrary(const std::vector<std::string>& names);
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  bool is_open() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  const std::string& error() const { return error_; }
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;  // never closed: the driver keeps threads of its own
  std::string name_;
  std::string error_;
};

}  // namespace nautilus::runtime
