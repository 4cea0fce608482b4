// SPDX-License-Identifier: Apache-2.0
// `launch k grid n else other`: the plan launches the other kernel for tensors that are not
// aligned.
#include <gtest/gtest.h>

#include "diag/render.h"
#include "driver/load/load.h"
#include "emit/emit.h"
#include "plan/frame.h"

namespace nautilus::driver {
namespace {

constexpr const char* kCopies = R"(matile.program @copy
  dim M hint 2
  tensor X : f32[M, 512] input
  tensor Y : f32[M, 512] output
  kernel single
    points i < M, j < 512
      write Y[i, j] = X[i, j]
  kernel vectors
    tiles T < M static
    role compute groups 1 regs 40
      tile x : f32[512] line by 4
      each t in T
        load x[j < 512] from X[t, j]
        put j < 512 : Y[t, j] = x[j]
  launch vectors grid M else single
)";

// The kernel that runs for X at this address with this distance between rows.
std::string chosen(uint64_t address, int64_t stride) {
  Unit unit;
  const auto program = load_text("copy.matile", kCopies, {}, unit);
  EXPECT_TRUE(program) << diag::render_all(unit.sink);
  if (!program) return "";
  const auto kernels = emit::emit_kernels(*program, unit.pool);
  const plan::Prepared prepared(*program, kernels);
  plan::Frame frame(prepared);
  const std::vector<int64_t> shape = {3, 512};
  const std::vector<int64_t> strides = {stride, 1};
  frame.bind(prepared.tensor("X"), {address, shape, strides});
  const std::vector<int64_t> dense = {512, 1};
  frame.bind(prepared.tensor("Y"), {4096, shape, dense});
  const plan::MapEncoder no_maps = [](const runtime::TensorMapView&, runtime::EncodedMap*,
                                      std::string*) { return false; };
  std::string error;
  EXPECT_TRUE(frame.evaluate(132, &error) && frame.pack(no_maps, &error)) << error;
  EXPECT_EQ(frame.launches().size(), 1u);
  if (frame.launches().size() != 1) return "";
  EXPECT_EQ(frame.launches()[0].grid, 3);
  return kernels[frame.launches()[0].kernel].name;
}

TEST(LaunchElse, TakesTheKernelThatTheTensorsAllow) {
  EXPECT_EQ(chosen(1024, 512), "vectors");
  EXPECT_EQ(chosen(1024, 516), "vectors");
  EXPECT_EQ(chosen(1028, 512), "single");
  EXPECT_EQ(chosen(1024, 513), "single");
}

}  // namespace
}  // namespace nautilus::driver
