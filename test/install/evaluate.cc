// SPDX-License-Identifier: Apache-2.0
// A C++ program with the installed library: the kernels of a program as text, and its value.
#include <nautilus.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct Close {
  void operator()(nautilus_program* p) const { nautilus_close(p); }
};

int main() {
  const std::string text =
      "dims M, N, K\nhint M = 64, N = 64, K = 64\n"
      "A: f32[M, K]\nB: f32[K, N]\n"
      "C[i,j] = sum[k] A[i,k] * B[k,j]  -> f32\n";
  nautilus_program* opened = nullptr;
  if (nautilus_open_text(text.c_str(), nullptr, &opened) != NAUTILUS_OK) {
    std::fprintf(stderr, "%s\n", nautilus_last_error());
    return 1;
  }
  const std::unique_ptr<nautilus_program, Close> program(opened);
  int32_t kernels = 0;
  if (nautilus_kernel_count(program.get(), &kernels) != NAUTILUS_OK) return 1;
  for (int32_t k = 0; k < kernels; ++k) {
    nautilus_kernel_info info = NAUTILUS_KERNEL_INFO_INIT;
    if (nautilus_kernel_at(program.get(), k, &info) != NAUTILUS_OK) return 1;
    std::printf("kernel %s (%s), %d threads\n", info.name, info.form, info.threads);
  }
  std::vector<float> a(6, 2), b(6, 3), c(4);
  const int64_t a_shape[] = {2, 3}, b_shape[] = {3, 2}, c_shape[] = {2, 2};
  const nautilus_tensor tensors[] = {{a.data(), a_shape, nullptr, 2, NAUTILUS_F32},
                                     {b.data(), b_shape, nullptr, 2, NAUTILUS_F32},
                                     {c.data(), c_shape, nullptr, 2, NAUTILUS_F32}};
  nautilus_arguments arguments = NAUTILUS_ARGUMENTS_INIT;
  arguments.tensors = tensors;
  arguments.tensor_count = 3;
  if (nautilus_evaluate(program.get(), &arguments, nullptr) != NAUTILUS_OK) {
    std::fprintf(stderr, "%s\n", nautilus_last_error());
    return 1;
  }
  for (float v : c)
    if (v != 18) return 1;
  std::printf("ok\n");
  return 0;
}
