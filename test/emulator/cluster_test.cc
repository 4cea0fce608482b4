// SPDX-License-Identifier: Apache-2.0
//
// CTAs of a cluster: multicast, arrivals at each other's barriers, and the meetings that both need.
#include <gtest/gtest.h>

#include "test/emulator/test_kernels.h"

namespace nautilus::emulator {
namespace {

constexpr int kTiles = 9;

// Each CTA loads half of every tile for both; a warp in each stores the whole tile, one below the
// other.
constexpr std::string_view kClusterKernels = R"(
struct Params { TensorMap in, out; int tiles; };
enum Bug { Right, NoMeeting, MeetingOfTheCta, NoEnd, OwnRelease, EarlyRelease, NoGet, HalfAnnounced,
           OneLoads, TooFewReaders, NobodyThere, Outside, NoWait, OneEnds };
template <int BUG> DEVICE void pair_copy(const Params& p) {
  SHARED_BASE(smem);
  const int thread = thread_index(), lane = thread % 32, warp = uniform(thread / 32);
  const int r = block_index() % 2;
  if (thread == 0) {
    Ring<3, 2>::init(smem + 24576, BUG == TooFewReaders ? 1 : 2);
    mbar_init_fence();
  }
  if (BUG == MeetingOfTheCta) sync_cta();
  else if (BUG != NoMeeting) sync_cluster();
  if (warp == 0 && lane == 0) {
    ROLE("load");
    Ring<3, 2> R(smem + 24576);
    for (int t = block_index() / 2; t < p.tiles; t += block_count() / 2) {
      const u32 full = BUG == NoWait ? R.fill_without_wait(8192) : R.fill(BUG == HalfAnnounced ? 4096 : 8192);
      if (BUG == Outside) tma_load_all<3>(smem + R.slot * 8192 + r * 4096, &p.in, full, 64 * t, 32 * r);
      else if (BUG != OneLoads || r == 0) tma_load_all<2>(smem + R.slot * 8192 + r * 4096, &p.in, full, 64 * t, 32 * r);
      R.advance();
    }
  } else if (warp == 1) {
    ROLE("store");
    Ring<3, 2> R(smem + 24576);
    for (int t = block_index() / 2; t < p.tiles; t += block_count() / 2) {
      if (BUG != NoGet) R.get();
      if (BUG == EarlyRelease) R.release(0, lane);
      if (lane == 0) {
        tma_store(&p.out, smem + R.slot * 8192, 64 * t, 64 * r);
        tma_commit();
        tma_wait_read<0>();
      }
      uniform(0);
      if (BUG == OwnRelease) { if (lane == 0) mbar_arrive(smem + 24576 + 8 * (3 + R.slot)); }
      else if (BUG == NobodyThere) { if (lane < 2) mbar_arrive_remote(smem + 24576 + 8 * (3 + R.slot), lane + 1); }
      else if (BUG != EarlyRelease) R.release(0, lane);
      R.advance();
    }
  }
  if (BUG == OneEnds && r == 1) return;
  if (BUG != NoEnd) sync_cluster();
}
#define PAIR(bug) KERNEL_CLUSTER(pair_##bug, 64, 2) { pair_copy<bug>(p); }
PAIR(Right) PAIR(NoMeeting) PAIR(MeetingOfTheCta) PAIR(NoEnd) PAIR(OwnRelease) PAIR(EarlyRelease)
PAIR(NoGet) PAIR(HalfAnnounced) PAIR(OneLoads) PAIR(TooFewReaders) PAIR(NobodyThere) PAIR(Outside)
PAIR(NoWait) PAIR(OneEnds)

// Sums over both CTAs, one after the other: each writes its word into both, at two places in turn.
enum SumBug { RightSum, EarlyWrite, NoSync, OnePlace, NobodyToWriteTo };
template <int BUG> DEVICE void pair_sum(const Params&) {
  SHARED_BASE(smem);
  const int thread = thread_index(), r = block_index() % 2;
  if (BUG != EarlyWrite) sync_cluster();
  for (int k = 0; k < 4; ++k) {
    const u32 to = smem + (BUG == OnePlace ? 0 : 16 * (k % 2));
    if (thread < 2)
      shared_store_remote_f32(to + 4 * r, BUG == NobodyToWriteTo ? thread + 1 : thread, (float)(10 * k + r));
    if (BUG != NoSync) sync_cluster();
    const float sum = shared_load_f32(to) + shared_load_f32(to + 4);
    if (sum != (float)(20 * k + 1)) shared_store_f32(smem + 1000000, sum);
  }
  sync_cluster();
}
#define SUM(bug) KERNEL_CLUSTER(sum_##bug, 64, 2) { pair_sum<bug>(p); }
SUM(RightSum) SUM(EarlyWrite) SUM(NoSync) SUM(OnePlace) SUM(NobodyToWriteTo)
)";

struct Params {
  TensorMap in, out;
  int tiles;
};

class EmulatedClusters : public testing::Test {
 protected:
  static const CompiledBody& body() {
    static const std::unique_ptr<CompiledBody> compiled =
        compile_for_test(std::string(kClusterKernels));
    return *compiled;
  }

  EmulatedClusters() : in_(64, 64 * kTiles), out_(128, 64 * kTiles) {
    for (int i = 0; i < in_.rows; ++i) {
      for (int j = 0; j < in_.cols; ++j) in_.set(i, j, static_cast<float>((i * 7 + j) % 101 + 1));
    }
  }

  std::string run_kernel(const std::string& kernel, uint64_t seed, int grid, int resident = 2) {
    const Params params = {in_.map(64, 32), out_.map(64, 64), kTiles};
    return run(
        body(),
        {kernel,
         grid,
         64,
         32768,
         &params,
         sizeof params,
         {{in_.data.data(), in_.data.size() * 2, false}, {out_.data.data(), out_.data.size() * 2}}},
        {.seed = seed, .resident = resident, .idle_limit = 200'000});
  }

  // What is missing shows whatever the schedule, in these words with some.
  void expect_report(const std::string& kernel, const std::string& part) {
    std::string all;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const std::string text = run_kernel(kernel, seed, 2);
      EXPECT_NE(text, "") << kernel << ", seed " << seed;
      all += text;
    }
    EXPECT_NE(all.find(part), std::string::npos) << kernel << ": " << all;
  }

  Matrix in_;
  Matrix out_;
};

TEST_F(EmulatedClusters, AllCtasGetWhatEachLoads) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (uint16_t& bits : out_.data) bits = 0;
    // One, two and three clusters, one or two of them at a time.
    const int clusters = 1 + static_cast<int>(seed % 3);
    ASSERT_EQ(run_kernel("pair_Right", seed, 2 * clusters, seed % 2 == 0 ? 2 : 5), "");
    int wrong = 0;
    for (int i = 0; i < out_.rows; ++i) {
      for (int j = 0; j < out_.cols; ++j) wrong += out_.at(i, j) != in_.at(i % 64, j);
    }
    ASSERT_EQ(wrong, 0) << seed;
  }
}

TEST_F(EmulatedClusters, CtasWriteIntoEachOther) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    ASSERT_EQ(run_kernel("sum_RightSum", seed, 4, seed % 2 == 0 ? 2 : 4), "") << seed;
  expect_report("sum_EarlyWrite", "which may not have begun");
  expect_report("sum_NoSync", "smem+0");
  expect_report("sum_OnePlace", "write to smem+0");
  expect_report("sum_NobodyToWriteTo", "write to CTA 2 of a cluster of 2");
}

TEST_F(EmulatedClusters, GridsAreWholeClusters) {
  EXPECT_EQ(run_kernel("pair_Right", 1, 3), "launch with a grid of 3 in clusters of 2\n");
}

TEST_F(EmulatedClusters, CtasMeetBeforeTheyReachEachOther) {
  expect_report("pair_NoMeeting", "of CTA 1 is used but was never initialised");
  expect_report("pair_MeetingOfTheCta", "is used before a cluster-wide barrier");
}

TEST_F(EmulatedClusters, NoCtaEndsWhileOthersNeedIt) {
  expect_report("pair_NoEnd", "sync_cluster");
  expect_report("pair_OneEnds", "waiting for all of the cluster: 2 of 4 warps are there");
  expect_report("pair_OneEnds", "CTA 1, of the same cluster as CTA 0, has ended");
}

TEST_F(EmulatedClusters, SlotsAreFreeWhenAllCtasHaveReadThem) {
  expect_report("pair_OwnRelease",
                "waiting for the empty barrier of slot 0 of 3 of the ring at smem+24576, phase 0: "
                "1 of 2 arrivals missing");
  expect_report("pair_EarlyRelease", "TMA ");
  expect_report("pair_NoWait", "gets more than its 1 arrivals in one phase");
  expect_report("pair_TooFewReaders", "of the ring at smem+24576 gets more than its 1 arrivals");
}

TEST_F(EmulatedClusters, BytesOfAllCtasAreCounted) {
  expect_report("pair_HalfAnnounced", "which nothing has written");
  expect_report("pair_OneLoads", "4096 bytes missing");
  expect_report("pair_NoGet", "TMA store from smem+");
}

TEST_F(EmulatedClusters, RanksAreThoseOfTheCluster) {
  expect_report("pair_NobodyThere", "arrival at CTA 2 of a cluster of 2");
  expect_report("pair_Outside", "multicast to CTAs 0x7 of a cluster of 2");
}

}  // namespace
}  // namespace nautilus::emulator
