// SPDX-License-Identifier: Apache-2.0
//
// One small kernel per rule that breaks it (rules_kernels.h), and some that do not.
#include <gtest/gtest.h>

#include <cmath>

#include "test/emulator/rules_kernels.h"
#include "test/emulator/test_kernels.h"

namespace nautilus::emulator {
namespace {

constexpr int kTiles = 9;

struct Params {
  TensorMap in, out;
  float* f;
  int* counter;
  const uint16_t* small;
  int tiles;
};

class EmulatedRules : public testing::Test {
 protected:
  static const CompiledBody& body() {
    static const std::unique_ptr<CompiledBody> compiled =
        compile_for_test(std::string(kRuleKernels));
    return *compiled;
  }

  EmulatedRules() : in_(60, 64 * kTiles), out_(64, 64 * kTiles), f_(1024) {
    for (int i = 0; i < in_.rows; ++i) {
      for (int j = 0; j < in_.cols; ++j) in_.set(i, j, static_cast<float>((i * 7 + j) % 101 + 1));
    }
  }

  std::string run_kernel(const std::string& kernel, int threads, uint64_t seed, int grid = 1,
                         bool is_early = false, Statistics* statistics = nullptr) {
    const Params params = {in_.map(64, 64), out_.map(64, 64), f_.data(),
                           &counter_,       small_.begin(),   kTiles};
    return run(body(),
               {kernel,
                grid,
                threads,
                32768,
                &params,
                sizeof params,
                {{in_.data.data(), in_.data.size() * 2, false},
                 {out_.data.data(), out_.data.size() * 2},
                 {f_.data(), f_.size() * 4},
                 {&counter_, 4},
                 {small_.data.data(), small_.data.size() * 2, false}},
                is_early},
               {.seed = seed, .idle_limit = 200'000}, statistics);
  }

  // The first report among some seeds.
  std::string report(const std::string& kernel, int threads, int grid = 1) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const std::string text = run_kernel(kernel, threads, seed, grid);
      if (!text.empty()) return text;
    }
    return "nothing";
  }

  void expect_report(const std::string& kernel, int threads, const std::string& part) {
    const std::string text = report(kernel, threads);
    EXPECT_NE(text.find(part), std::string::npos) << kernel << ": " << text;
  }

  // What a ring of tiles must have written: columns 5 to the left and rows 3 up, zeros outside.
  int wrong_elements() {
    int wrong = 0;
    for (int i = 0; i < out_.rows; ++i) {
      for (int j = 0; j < out_.cols; ++j) {
        const int row = i - 3;
        const int col = j - 8;
        const bool is_inside = row >= 0 && row < in_.rows && col >= 0 && col < in_.cols;
        if (out_.at(i, j) != (is_inside ? in_.at(row, col) : 0.f)) ++wrong;
      }
    }
    return wrong;
  }

  Matrix in_;
  Matrix out_;
  Matrix small_{16, 16};
  std::vector<float> f_;
  int counter_ = 0;
};

TEST_F(EmulatedRules, AKernelThatBeginsEarlyWaitsBeforeItTouchesGlobalMemory) {
  EXPECT_EQ(run_kernel("early_right", 32, 1, 1, true), "");
  EXPECT_EQ(run_kernel("early_wrong", 32, 1, 1, false), "");
  const std::string text = run_kernel("early_wrong", 32, 1, 1, true);
  EXPECT_NE(text.find("write of global memory before earlier kernels have ended"),
            std::string::npos)
      << text;
}

TEST_F(EmulatedRules, ARingCopiesWithNegativeCoordinates) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (uint16_t& bits : out_.data) bits = 0;
    ASSERT_EQ(run_kernel("ring_Right", 64, seed, 1 + static_cast<int>(seed % 3)), "");
    ASSERT_EQ(wrong_elements(), 0) << seed;
  }
}

TEST_F(EmulatedRules, RingsAreUsedInTurn) {
  expect_report("ring_EarlyRelease", 64, "TMA ");
  expect_report("ring_NoRelease", 64,
                "load, warp 0 lane 0: waiting for the empty barrier of slot 0 of 3 of the ring at "
                "smem+24576, phase 0: 1 of 1 arrivals missing");
  expect_report("ring_NoRelease", 64, "const u32 full = R.fill(BUG == ShortCopy ? 16384 : 8192);");
  expect_report("ring_NoRelease", 64, "deadlock: nobody can run");
  expect_report("ring_NoStoreWait", 64, "may still read");
  expect_report("ring_NoStoreCommit", 64, "may still read");
  expect_report("ring_TooFar", 64, "a parity tells neighbouring phases apart only");
  expect_report("ring_ShortCopy", 64, "8192 bytes missing");
  expect_report("ring_NoGet", 64, "TMA store from smem+");
  expect_report("ring_Unaligned", 64, "a copy begins at element -5 of a row");
}

TEST_F(EmulatedRules, NumbersGoThroughARing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    counter_ = 0;
    ASSERT_EQ(run_kernel("numbers", 96, seed), "");
    for (size_t lane = 0; lane < 32; ++lane) ASSERT_EQ(f_[lane], kTiles * (kTiles + 1) / 2);
  }
}

TEST_F(EmulatedRules, LanesExchangeValues) {
  ASSERT_EQ(run_kernel("lanes", 64, 1), "");
  for (int thread = 0; thread < 64; ++thread) {
    const int lane = thread % 32;
    const int pair = lane + (lane ^ 1);
    const int sum = pair + ((lane ^ 16) + (lane ^ 17));
    const int want = sum + (thread >= 32 ? 11000 : 0);
    EXPECT_EQ(f_[static_cast<size_t>(thread)], static_cast<float>(want)) << thread;
  }
}

TEST_F(EmulatedRules, LanesAskLanes) {
  ASSERT_EQ(run_kernel("lanes_ask", 64, 1), "");
  for (int thread = 0; thread < 64; ++thread) {
    const int want = thread / 32 * 32 + thread * 5 % 32;
    EXPECT_EQ(f_[static_cast<size_t>(thread)], static_cast<float>(want)) << thread;
  }
  expect_report("lanes_ask_outside", 32, "lane_from lane 32: a warp has 32");
}

TEST_F(EmulatedRules, LanesStayTogether) {
  expect_report("lanes_differ", 32, "uniform of values that differ: 0 in lane 0, 1 in lane 16");
  expect_report("lanes_diverge", 32, "warp 0 diverges");
  expect_report("lanes_exit", 32,
                "CTA 0, vote, warp 0 lanes 0-29: waiting at vote_any for lanes 30-31 of its warp");
}

TEST_F(EmulatedRules, TurnsOrderTheGroups) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ASSERT_EQ(run_kernel("turns_right", 256, seed), "");
    int want = 1;
    for (int i = 0; i < 8; ++i) want = 2 * want + i % 2;
    ASSERT_EQ(f_[0], static_cast<float>(want));
  }
  expect_report("turns_no_enter", 256, "known through no barrier");
  expect_report("turns_no_leave", 256, "waiting for named barrier");
}

TEST_F(EmulatedRules, NamedBarriersCountThreads) {
  expect_report("barrier_short", 128,
                "all, warps 0-2: waiting for named barrier 3: 96 of 128 threads are there");
  expect_report("barrier_counts", 128, "is used for");
  expect_report("barrier_number", 128, "named barrier 16: there are 16");
}

TEST_F(EmulatedRules, PhaseBarriersCountArrivals) {
  expect_report("mbarrier_twice", 32, "gets more than its 1 arrivals in one phase");
  expect_report("mbarrier_written", 32, "write to smem+12 overwrites the mbarrier at smem+8");
}

TEST_F(EmulatedRules, SharedMemoryHasBounds) {
  expect_report("shared_outside", 32,
                "access to 4 bytes at smem+32768 leaves the 32768 bytes of shared memory");
  expect_report("shared_misaligned", 32, "address smem+2 is not a multiple of 4");
  expect_report("shared_unwritten", 32, "read of smem+0, which nothing has written");
}

TEST_F(EmulatedRules, StmatrixAndStoreRoundTrip) {
  ASSERT_EQ(run_kernel("staged_right", 128, 1), "");
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 64; ++j) {
      EXPECT_EQ(out_.at(i, j), static_cast<float>(j % 2 == 0 ? i : j - 1)) << i << " " << j;
    }
  }
}

TEST_F(EmulatedRules, LdmatrixFeedsMma) {
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) small_.set(i, k, static_cast<float>((i * 5 + k * 3) % 11 - 5));
  }
  ASSERT_EQ(run_kernel("small", 32, 1), "");
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float want = 1;
      for (int k = 0; k < 16; ++k) want += small_.at(i, k) * small_.at(j, k);
      EXPECT_EQ(f_[static_cast<size_t>(i * 16 + j)], want) << i << " " << j;
    }
  }
}

TEST_F(EmulatedRules, OrdinaryWritesAreFencedBeforeAStore) {
  expect_report("staged_no_fence", 128, "without a fence_async since");
  expect_report("staged_no_sync", 128, "TMA store from smem+");
}

TEST_F(EmulatedRules, RegistersComeFromAPool) {
  EXPECT_EQ(report("registers_right", 384), "nothing");
  expect_report("registers_beyond", 384,
                "waiting for 240 registers per thread: 2304 more are needed, ");
}

TEST_F(EmulatedRules, GlobalMemoryHasBounds) {
  expect_report("global_outside", 32, "write of 4 bytes of global memory outside every buffer");
}

TEST_F(EmulatedRules, ErfIsWhatThePreludeSays) {
  ASSERT_EQ(run_kernel("erf_values", 32, 1), "");
  for (int i = 0; i < 1024; ++i) {
    const double x = static_cast<double>(static_cast<float>(i - 512) / 100.f);
    EXPECT_NEAR(static_cast<double>(f_[static_cast<size_t>(i)]), std::erf(x), 2e-7) << x;
  }
}

TEST_F(EmulatedRules, CopiesFitTheirMaps) {
  expect_report("rank", 32, "a copy with 3 coordinates by a tensor map of rank 2");
}

TEST_F(EmulatedRules, EndlessLoopsEnd) {
  expect_report("endless", 32, "no progress in 200000 calls: no CTA has ended");
  expect_report("writes_the_same", 32, "no progress in 200000 calls: no CTA has ended");
}

TEST_F(EmulatedRules, ALongLaunchIsNoLoop) {
  Statistics statistics;
  EXPECT_EQ(run_kernel("long_launch", 32, 1, 1, false, &statistics), "");
  EXPECT_GT(statistics.steps, 4 * 200'000);
}

TEST_F(EmulatedRules, TheLastBlockSeesAllOthers) {
  EXPECT_EQ(report("last_block", 32, 7), "nothing");
  EXPECT_EQ(f_[0], 7.f);
  EXPECT_EQ(counter_, 0);
}

TEST_F(EmulatedRules, LaunchesFitTheirKernels) {
  EXPECT_EQ(report("none", 32), "the body has no kernel `none`\n");
  EXPECT_EQ(report("lanes", 128), "launch with 128 threads, kernel `lanes` is compiled for 64\n");
  EXPECT_EQ(report("lanes", 33), "launch with 33 threads: must be a multiple of 32 up to 1024\n");
  const int params = 0;
  EXPECT_EQ(run(body(), {"lanes", 1, 64, 0, &params, sizeof params}, {}),
            "launch with 4 bytes of parameters, kernel `lanes` takes 320\n");
}

TEST_F(EmulatedRules, ASeedIsAnOrder) {
  const std::string text = run_kernel("staged_no_sync", 128, 3);
  EXPECT_EQ(run_kernel("staged_no_sync", 128, 3), text);
  const std::string name = "ring_NoRelease";
  EXPECT_EQ(run_kernel(name, 64, 5), run_kernel(name, 64, 5));
}

}  // namespace
}  // namespace nautilus::emulator
