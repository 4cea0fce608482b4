// SPDX-License-Identifier: Apache-2.0
// The device, where there is one: compile, load, launch, poison, read back. Without one: errors
// that say what to do.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/cuda_device.h"
#include "runtime/cuda_driver.h"
#include "runtime/nvrtc.h"

namespace nautilus::runtime {
namespace {

TEST(CudaDriver, StatusesSayWhatToDo) {
  // The names come from the driver, what to do does not.
  EXPECT_NE(status_text(kIllegalAddress).find("`compute-sanitizer`"), std::string::npos);
  EXPECT_NE(status_text(kLastKernelFault).find("`compute-sanitizer`"), std::string::npos);
  EXPECT_NE(status_text(kOutOfMemory).find("smaller sizes"), std::string::npos);
  EXPECT_NE(status_text(kNewerDriverNeeded).find("update the NVIDIA driver"), std::string::npos);
  EXPECT_NE(status_text(kFirstCaptureError).find("captured"), std::string::npos);
  std::string error = "untouched";
  EXPECT_FALSE(failed(kSuccess, "what", &error));
  EXPECT_EQ(error, "untouched");
  EXPECT_TRUE(failed(kNoDevice, "what", &error));
  EXPECT_TRUE(error.starts_with("what: ")) << error;
}

TEST(CudaDevice, ArchitecturesFitDevices) {
  EXPECT_TRUE(can_run("sm_90a", 9, 0));
  EXPECT_FALSE(can_run("sm_90a", 10, 0));
  EXPECT_FALSE(can_run("sm_90a", 8, 9));
  EXPECT_TRUE(can_run("sm_80", 8, 0));
  EXPECT_TRUE(can_run("sm_80", 8, 9));
  EXPECT_FALSE(can_run("sm_89", 8, 0));
  EXPECT_FALSE(can_run("sm_80", 9, 0));
  EXPECT_TRUE(can_run("sm_120", 12, 0));
  EXPECT_FALSE(can_run("cpu", 9, 0));
  EXPECT_FALSE(can_run("sm_", 9, 0));
}

TEST(CudaDevice, WithoutADriverTheErrorSaysWhatToDo) {
  std::string error;
  if (driver_info(&error)) GTEST_SKIP() << "this machine has a CUDA driver";
  EXPECT_FALSE(Device::open(0, "sm_90a", &error));
  EXPECT_NE(error.find("driver"), std::string::npos);
  EXPECT_NE(error.find("install"), std::string::npos);
}

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    device_ = Device::open(0, "", &error);
    if (!device_) GTEST_SKIP() << error;
    if (!nvrtc_info(&error)) GTEST_SKIP() << error;
    architecture_ = "sm_" + std::to_string(device_->info().major * 10 + device_->info().minor);
  }
  std::unique_ptr<Device> device_;
  std::string architecture_;
};

TEST_F(OnDevice, RunsAKernelAndPoisonsWhatItDoesNotWrite) {
  std::string error;
  const auto compiled = compile_cuda(
      "extern \"C\" __global__ void twice(const float* x, float* y, int n) {"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }",
      "twice.cu", architecture_, {}, &error);
  ASSERT_TRUE(compiled) << error;
  const auto kernel = device_->load_kernel(compiled->cubin, "twice", 0, &error);
  ASSERT_TRUE(kernel) << error;
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.5F;
  auto in = device_->allocate(x.size() * 4, &error);
  auto out = device_->allocate(x.size() * 4, &error);
  ASSERT_TRUE(in && out) << error;
  ASSERT_TRUE(device_->upload(*in, x.data(), x.size() * 4, &error)) << error;
  ASSERT_TRUE(device_->fill(*out, 0xFF, x.size() * 4, &error)) << error;
  int n = 900;
  LaunchShape shape;
  shape.grid[0] = 8;
  shape.block[0] = 128;
  void* parameters[] = {&*in, &*out, &n};
  ASSERT_TRUE(device_->launch(*kernel, shape, parameters, Stream(), &error)) << error;
  ASSERT_TRUE(device_->synchronize(&error)) << error;
  std::vector<float> y(x.size());
  ASSERT_TRUE(device_->download(y.data(), *out, y.size() * 4, &error)) << error;
  for (size_t i = 0; i < 900; ++i) ASSERT_EQ(y[i], 2 * x[i]) << i;
  for (size_t i = 900; i < 1000; ++i) ASSERT_TRUE(std::isnan(y[i])) << i;
  device_->free(*in);
  device_->free(*out);
  device_->unload_kernel(*kernel);
  device_->unload_kernel(*kernel);  // nothing of this name is left
}

TEST_F(OnDevice, ErrorsNameTheCause) {
  std::string error;
  EXPECT_FALSE(device_->allocate(size_t{1} << 60, &error));
  EXPECT_NE(error.find("out of GPU memory: 1152921504606846976 bytes wanted"), std::string::npos)
      << error;
  EXPECT_NE(error.find(" free; use smaller sizes"), std::string::npos) << error;
  EXPECT_FALSE(Device::open(99, "", &error));
  EXPECT_NE(error.find("no CUDA device 99"), std::string::npos) << error;
  EXPECT_FALSE(Device::open(0, "sm_10a", &error));
  EXPECT_NE(error.find("cannot run code for sm_10a"), std::string::npos) << error;
  EXPECT_FALSE(device_->load_kernel("not machine code", "f", 0, &error));
  EXPECT_NE(error.find("does not load"), std::string::npos) << error;
  const std::string other = architecture_ == "sm_80" ? "sm_90" : "sm_80";
  const auto foreign =
      compile_cuda("extern \"C\" __global__ void f() {}", "f.cu", other, {}, &error);
  if (foreign) {
    EXPECT_FALSE(device_->load_kernel(foreign->cubin, "f", 0, &error));
    EXPECT_NE(error.find("another architecture"), std::string::npos) << error;
  }
  const auto own =
      compile_cuda("extern \"C\" __global__ void f() {}", "f.cu", architecture_, {}, &error);
  ASSERT_TRUE(own) << error;
  EXPECT_FALSE(device_->load_kernel(own->cubin, "g", 0, &error));
  EXPECT_NE(error.find("no kernel `g`"), std::string::npos) << error;
  EXPECT_FALSE(device_->load_kernel(own->cubin, "f", 1 << 20, &error));
  EXPECT_NE(error.find("wants 1048576 bytes of shared memory"), std::string::npos) << error;
  const auto kernel = device_->load_kernel(own->cubin, "f", 0, &error);
  ASSERT_TRUE(kernel) << error;
  LaunchShape shape;
  shape.block[0] = 2048;
  EXPECT_FALSE(device_->launch(*kernel, shape, {}, Stream(), &error));
  EXPECT_NE(error.find("block 2048x1x1"), std::string::npos) << error;
}

}  // namespace
}  // namespace nautilus::runtime
