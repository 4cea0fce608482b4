// SPDX-License-Identifier: Apache-2.0
//
// Runs the body of a generated sm_90a kernel on the CPU. The body is compiled with the system's C++
// compiler against prelude/host.h, which calls the emulator: threads are fibers, asynchronous work
// is done late and in a seeded random order, and the rules that the hardware does not check are
// checked. docs/emulator.md says what is modelled and what is not.
//
//     std::string error;
//     const auto body = CompiledBody::compile(text, {}, &error);
//     const std::string report = run(*body, {"gemm", 2, 384, 230000, &params, sizeof params}, {});
//
// Tensor maps among the parameters are 128 bytes of which the first hold a runtime::TensorMapView.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "target/target.h"

namespace nautilus::emulator {

struct CompileOptions {
  // The folder of compiled bodies, a runtime::KernelCache; empty: its default.
  std::string cache_folder;
  bool use_cache = true;
};

// A loaded kernel library. Runs on several threads may share it.
class CompiledBody {
 public:
  // Null, and what the compiler said, on failure. The compiler is $CXX, c++, g++ or clang++.
  static std::unique_ptr<CompiledBody> compile(const std::string& body,
                                               const CompileOptions& options, std::string* error);
  ~CompiledBody();
  CompiledBody(const CompiledBody&) = delete;
  CompiledBody& operator=(const CompiledBody&) = delete;

  void* symbol(const std::string& name) const;
  // Without indentation; empty if there is no such line (the first is 1).
  std::string line_text(int line) const;

 private:
  CompiledBody(void* handle, std::string text) : handle_(handle), text_(std::move(text)) {}

  void* handle_;
  std::string text_;
};

// Global memory that a kernel may touch.
struct Buffer {
  const void* at = nullptr;
  size_t bytes = 0;
  bool is_writable = true;
};

struct Launch {
  std::string kernel;
  int grid = 1;
  int threads = 128;
  int shared_bytes = 0;
  const void* params = nullptr;
  size_t param_bytes = 0;
  // If not empty, every access to global memory must be inside one of them.
  std::vector<Buffer> buffers = {};
  // Begins while earlier kernels may still run: no access to global memory before it waited.
  bool is_early = false;
};

inline constexpr int64_t kIdleLimit = 100'000'000;

struct Options {
  uint64_t seed = 1;
  // CTAs that run at the same time; the others follow in a random order as these end.
  int resident = 2;
  // Calls of prelude functions by all threads together without progress (progress.h), after which
  // the kernel is reported to loop.
  int64_t idle_limit = kIdleLimit;
  // Of the target; null: those of the default one.
  const target::Limits* limits = nullptr;
};

struct Statistics {
  int64_t steps = 0;
  int64_t switches = 0;
  int64_t products = 0;  // of one warp each
  int64_t copies = 0;
};

// Runs all CTAs. Empty if nothing is wrong with how the kernel ran, else a description of the first
// violation, several lines of text. The caller has to compare the results.
std::string run(const CompiledBody& body, const Launch& launch, const Options& options,
                Statistics* statistics = nullptr);

}  // namespace nautilus::emulator
