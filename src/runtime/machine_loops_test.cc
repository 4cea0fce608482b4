// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine_loops.h"

#include <gtest/gtest.h>

#include "runtime/nvrtc.h"

namespace nautilus::runtime {
namespace {

std::string word(uint64_t value) { return {reinterpret_cast<const char*>(&value), 8}; }

std::string instruction(uint64_t opcode) { return word(opcode | 7ULL << 12) + word(7ULL << 23); }

// `distance` in instructions from the next one.
std::string branch(int64_t distance, bool is_guarded) {
  const uint64_t units = static_cast<uint64_t>(distance * 4) & ((1ULL << 56) - 1);
  const uint64_t guard = is_guarded ? 0 : 7;
  return word(0x947 | guard << 12 | (units & 0xff) << 16 | (units >> 8) << 34) +
         word(7ULL << 23 | units >> 38);
}

const std::string kLoad = instruction(0x983);
const std::string kStore = instruction(0x387);
const std::string kMatrix = instruction(0x9f0);
const std::string kOther = instruction(0x223);
const std::string kExit = instruction(0x94d);

TEST(MachineLoops, CountsWhatIsInALoop) {
  // Two instructions before, then three and a branch back over them.
  const auto loops =
      machine_loops(kOther + kStore + kLoad + kMatrix + kOther + branch(-4, true) + kExit);
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].start, 32U);
  EXPECT_EQ(loops[0].instructions, 4);
  EXPECT_EQ(loops[0].matrix, 1);
  EXPECT_EQ(loops[0].spill_loads, 1);
  EXPECT_EQ(loops[0].spill_stores, 0);
  EXPECT_EQ(worst_matrix_loop(loops), &loops[0]);
}

TEST(MachineLoops, MatrixInstructionsOfAllOperandsCount) {
  // Floats of 16 bits, integers and floats of 8 bits.
  const auto loops = machine_loops(kOther + kMatrix + instruction(0x9f1) + instruction(0x9f3) +
                                   branch(-4, true) + kExit);
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].matrix, 3);
}

TEST(MachineLoops, SpillsAroundTheInnerMatrixLoopAreNotInIt) {
  const auto loops = machine_loops(kLoad + kMatrix + kOther + branch(-3, true) + kStore +
                                   branch(-6, true) + kExit);
  ASSERT_EQ(loops.size(), 2U);
  EXPECT_EQ(loops[0].depth, 1);
  EXPECT_TRUE(loops[0].has_inner_matrix_loop);
  EXPECT_EQ(loops[0].spill_loads + loops[0].spill_stores, 2);
  EXPECT_EQ(loops[1].depth, 2);
  EXPECT_EQ(loops[1].instructions, 3);
  EXPECT_EQ(worst_matrix_loop(loops), nullptr);
}

TEST(MachineLoops, CodeBehindTheKernelIsNoLoop) {
  // 0: to 4; 1: other; 2: other; 3: exit; 4: back to 1, where nothing comes back from.
  EXPECT_TRUE(machine_loops(branch(3, true) + kOther + kOther + kExit + branch(-4, false)).empty());
}

TEST(MachineLoops, AnyBytesAreSafe) {
  EXPECT_TRUE(machine_loops("").empty());
  EXPECT_TRUE(machine_loops("short").empty());
  EXPECT_TRUE(machine_loops(branch(1000, false)).empty());
  EXPECT_TRUE(loops_of_cubin("").empty());
  EXPECT_TRUE(loops_of_cubin(std::string("\x7f") + "ELF" + std::string(60, '\xff')).empty());
}

TEST(MachineLoops, FindsSpillsOfACompiledKernel) {
  std::string error;
  if (!nvrtc_info(&error)) GTEST_SKIP() << error;
  const auto kernel = compile_cuda(R"(
extern "C" __global__ void __launch_bounds__(1024) k(float* x, int n) {
  float a[64];
  for (int i = 0; i < 64; i++) a[i] = x[i * 1024 + threadIdx.x];
  for (int t = 0; t < n; t++)
#pragma unroll
    for (int i = 0; i < 64; i++) a[i] = a[i] * a[(i * 7 + 3) % 64] + x[t + i * 17];
  for (int i = 0; i < 64; i++) x[i * 1024 + threadIdx.x] = a[i];
}
)",
                                   "spills.cu", "sm_90a", {}, &error);
  ASSERT_TRUE(kernel) << error;
  ASSERT_GT(kernel->report.kernels[0].spill_load_bytes, 0);
  const auto kernels = loops_of_cubin(kernel->cubin);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].name, "k");
  ASSERT_EQ(kernels[0].loops.size(), 1U);
  EXPECT_GT(kernels[0].loops[0].instructions, 64);
  EXPECT_GT(kernels[0].loops[0].spill_loads, 0);
  EXPECT_EQ(worst_matrix_loop(kernels[0].loops), nullptr);
}

}  // namespace
}  // namespace nautilus::runtime
