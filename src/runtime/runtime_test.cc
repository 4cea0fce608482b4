// SPDX-License-Identifier: Apache-2.0
// Compiling for the GPU without one: NVRTC where it is found, its report, and the cache of its
// results.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/files.h"
#include "runtime/kernel_cache.h"
#include "runtime/nvrtc.h"

namespace nautilus::runtime {
namespace {

constexpr const char* kKernel = R"(
extern "C" __global__ void scale(float* x, float s, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= s;
}
)";

TEST(Nvrtc, CompilesForHopperWhereItIsFound) {
  std::string error;
  if (!nvrtc_info(&error)) GTEST_SKIP() << error;
  const auto kernel = compile_cuda(kKernel, "scale.cu", "sm_90a", {}, &error);
  ASSERT_TRUE(kernel) << error;
  EXPECT_EQ(kernel->cubin.substr(1, 3), "ELF");
  ASSERT_EQ(kernel->report.kernels.size(), 1U) << kernel->log;
  EXPECT_EQ(kernel->report.kernels[0].name, "scale");
  EXPECT_GT(kernel->report.kernels[0].registers, 0);
  EXPECT_EQ(kernel->report.kernels[0].spill_store_bytes, 0);
}

TEST(Nvrtc, ErrorsCarryTheCompilersMessage) {
  std::string error;
  if (!nvrtc_info(&error)) GTEST_SKIP() << error;
  EXPECT_FALSE(
      compile_cuda("__global__ void f() { undefined(); }", "bad.cu", "sm_90a", {}, &error));
  EXPECT_NE(error.find("bad.cu(1): error"), std::string::npos) << error;
  EXPECT_NE(error.find("undefined"), std::string::npos);
  EXPECT_FALSE(compile_cuda(kKernel, "scale.cu", "sm_1", {}, &error));
}

TEST(Nvrtc, CompilesFromSeveralThreads) {
  std::string error;
  if (!nvrtc_info(&error)) GTEST_SKIP() << error;
  std::vector<std::string> cubins(4);
  std::vector<std::thread> threads;
  for (std::string& cubin : cubins) {
    threads.emplace_back([&cubin] {
      std::string why;
      if (const auto kernel = compile_cuda(kKernel, "scale.cu", "sm_90a", {}, &why))
        cubin = kernel->cubin;
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& cubin : cubins) EXPECT_EQ(cubin, cubins[0]);
  EXPECT_FALSE(cubins[0].empty());
}

TEST(PtxasReport, FindsUsesSpillsAndAdvisories) {
  const PtxasReport r = parse_ptxas_report(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized\n"
      "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
      "ptxas info    : Function properties for gemm\n"
      "    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 400 bytes cmem[0]\n");
  ASSERT_EQ(r.kernels.size(), 1U);
  EXPECT_EQ(r.kernels[0].name, "gemm");
  EXPECT_EQ(r.kernels[0].registers, 168);
  EXPECT_EQ(r.kernels[0].stack_bytes, 16);
  EXPECT_EQ(r.kernels[0].spill_store_bytes, 24);
  EXPECT_EQ(r.kernels[0].spill_load_bytes, 32);
  EXPECT_EQ(r.advisories.size(), 1U);
  EXPECT_TRUE(parse_ptxas_report("").kernels.empty());
}

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "nautilus_cache_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(CacheTest, ReturnsWhatWasPut) {
  const KernelCache cache(folder_);
  const std::string key = KernelCache::key({"source", "sm_90a"});
  std::string error;
  EXPECT_FALSE(cache.get(key));
  ASSERT_TRUE(cache.put(key,
                        std::string("\x7f"
                                    "ELF\0binary",
                                    11),
                        &error))
      << error;
  EXPECT_EQ(cache.get(key), std::string("\x7f"
                                        "ELF\0binary",
                                        11));
}

TEST_F(CacheTest, KeysSeparateTheirParts) {
  EXPECT_NE(KernelCache::key({"ab", "c"}), KernelCache::key({"a", "bc"}));
  EXPECT_NE(KernelCache::key({"a", ""}), KernelCache::key({"a"}));
  EXPECT_EQ(KernelCache::key({"a"}).size(), 32U);
}

TEST_F(CacheTest, DamagedEntriesAreMisses) {
  const KernelCache cache(folder_);
  const std::string key = KernelCache::key({"x"});
  std::string error;
  ASSERT_TRUE(cache.put(key, "the whole content", &error));
  const std::string file = folder_ + "/" + key.substr(0, 2) + "/" + key;
  const std::string good = *base::read_file(file, &error);
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), good + "x", std::string("other")}) {
    ASSERT_TRUE(base::write_file_atomic(file, bad, &error));
    EXPECT_FALSE(cache.get(key));
  }
}

TEST_F(CacheTest, TheFolderIsTheUsersAlone) {
  namespace fs = std::filesystem;
  const KernelCache cache(folder_);
  const std::string key = KernelCache::key({"x"});
  std::string error;
  ASSERT_TRUE(cache.put(key, "content", &error)) << error;
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  // Files that others may write to are not run.
  fs::permissions(folder_, fs::perms::all);
  EXPECT_FALSE(cache.get(key));
  EXPECT_FALSE(cache.put(key, "content", &error));
  EXPECT_NE(error.find("others may write"), std::string::npos) << error;
}

TEST_F(CacheTest, WhatWasNotUsedForLongGoesFirst) {
  namespace fs = std::filesystem;
  constexpr uint64_t kMost = 1000;
  const KernelCache cache(folder_, kMost);
  std::string error;
  std::vector<std::string> keys;
  const std::string content(150, 'x');
  for (int i = 0; i < 8; ++i) {
    keys.push_back(KernelCache::key({"entry", std::to_string(i)}));
    const KernelCache unlimited(folder_, uint64_t{1} << 30);
    ASSERT_TRUE(unlimited.put(keys.back(), content, &error)) << error;
    fs::last_write_time(folder_ + "/" + keys.back().substr(0, 2) + "/" + keys.back(),
                        fs::file_time_type::clock::now() - std::chrono::hours(100 - i));
  }
  ASSERT_TRUE(cache.get(keys[0]));  // used now
  cache.evict();
  EXPECT_TRUE(cache.get(keys[0]));
  EXPECT_TRUE(cache.get(keys[7]));
  EXPECT_FALSE(cache.get(keys[1]));
  uint64_t left = 0;
  for (const auto& e : fs::recursive_directory_iterator(folder_))
    if (e.is_regular_file()) left += e.file_size();
  EXPECT_LE(left, kMost / 10 * 9);
  EXPECT_GT(left, kMost / 2);
}

TEST_F(CacheTest, AnUnwritableFolderIsReportedNotFatal) {
  const KernelCache cache("/proc/nautilus");
  std::string error;
  EXPECT_FALSE(cache.put(KernelCache::key({"x"}), "content", &error));
  EXPECT_FALSE(error.empty());
}

}  // namespace
}  // namespace nautilus::runtime
