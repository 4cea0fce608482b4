// SPDX-License-Identifier: Apache-2.0
// What tests of the C interface share: a program that is closed again, tensors on the host.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "nautilus.h"

namespace nautilus::capi {

inline constexpr const char* kGemm = R"(dims M, N, K
hint M = 24, N = 16, K = 32
A: bf16[M, K]
B: bf16[K, N]
alpha = 1.0
C[i,j] = alpha * sum[k] A[i,k] * B[k,j]  -> f32
)";

// A program that is closed with this object.
class Opened {
 public:
  explicit Opened(const char* text, nautilus_open_options options = usual()) {
    status = nautilus_open_text(text, &options, &program);
  }
  static Opened file(const std::string& path, const char* sizes = nullptr) {
    Opened out;
    nautilus_open_options options = usual();
    options.sizes = sizes;
    out.status = nautilus_open_file(path.c_str(), &options, &out.program);
    return out;
  }
  // Without the trials of whoever runs the test.
  static nautilus_open_options usual() {
    nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
    options.flags = NAUTILUS_OPEN_UNTUNED;
    return options;
  }
  Opened(Opened&& other) noexcept
      : status(other.status), program(std::exchange(other.program, nullptr)) {}
  ~Opened() { nautilus_close(program); }

  nautilus_status status = NAUTILUS_OK;
  nautilus_program* program = nullptr;

 private:
  Opened() = default;
};

// A dense tensor of floats on the host.
struct Host {
  std::vector<int64_t> shape;
  std::vector<float> data;

  explicit Host(std::vector<int64_t> extents) : shape(std::move(extents)) {
    size_t count = 1;
    for (int64_t e : shape) count *= static_cast<size_t>(e);
    data.resize(count);
    // Small multiples of 1/4, which every float dtype but the smallest holds exactly.
    for (size_t i = 0; i < count; ++i) data[i] = 0.25F * static_cast<float>((i * 7) % 11) - 1.0F;
  }
  nautilus_tensor tensor() {
    return {data.data(), shape.data(), nullptr, static_cast<int32_t>(shape.size()), NAUTILUS_F32};
  }
};

inline nautilus_arguments arguments(const std::vector<nautilus_tensor>& tensors,
                                    const std::vector<nautilus_value>& values = {}) {
  nautilus_arguments a = NAUTILUS_ARGUMENTS_INIT;
  a.tensors = tensors.data();
  a.tensor_count = static_cast<int32_t>(tensors.size());
  a.values = values.data();
  a.value_count = static_cast<int32_t>(values.size());
  return a;
}

inline bool says(const char* part) {
  return std::string(nautilus_last_error()).find(part) != std::string::npos;
}

inline std::string text(const Opened& p, nautilus_text_kind kind) {
  const char* out = nullptr;
  EXPECT_EQ(nautilus_text(p.program, kind, &out), NAUTILUS_OK) << nautilus_last_error();
  return out ? out : "";
}

}  // namespace nautilus::capi
