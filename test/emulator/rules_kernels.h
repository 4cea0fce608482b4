// SPDX-License-Identifier: Apache-2.0
//
// For tests: small kernels that keep or break one rule each. All are in one body: the compiler is
// what takes time.
#pragma once

#include <string_view>

namespace nautilus::emulator {

inline constexpr std::string_view kRuleKernels = R"(
struct Params { TensorMap in, out; float* f; int* counter; const u16* small; int tiles; };
enum Bug { Right, EarlyRelease, NoRelease, NoStoreWait, NoStoreCommit, TooFar, ShortCopy, NoGet, Unaligned };

// A loader, and a warp that stores every tile it gets from where it lies.
template <int BUG> DEVICE void ring_copy(const Params& p) {
  SHARED_BASE(smem);
  const int thread = thread_index(), lane = thread % 32, warp = uniform(thread / 32);
  if (thread == 0) {
    Ring<3>::init(smem + 24576, 1);
    mbar_init_fence();
  }
  sync_cta();
  if (warp == 0 && lane == 0) {
    ROLE("load");
    Ring<3> R(smem + 24576);
    for (int t = block_index(); t < p.tiles; t += block_count()) {
      const u32 full = R.fill(BUG == ShortCopy ? 16384 : 8192);
      tma_load(smem + R.slot * 8192, &p.in, full, 64 * t - (BUG == Unaligned ? 5 : 8), -3);
      R.advance();
      if (BUG == TooFar) R.jump(6);
    }
  } else if (warp == 1 && lane == 0) {
    ROLE("store");
    Ring<3> R(smem + 24576);
    for (int t = block_index(); t < p.tiles; t += block_count()) {
      if (BUG != NoGet) R.get();
      if (BUG == EarlyRelease) R.release(0, lane);
      tma_store(&p.out, smem + R.slot * 8192, 64 * t, 0);
      if (BUG != NoStoreCommit) tma_commit();
      if (BUG != NoStoreWait) tma_wait_read<0>();
      if (BUG != EarlyRelease && BUG != NoRelease) R.release(0, lane);
      R.advance();
    }
  }
}
KERNEL(ring_Right, 64) { ring_copy<Right>(p); }
KERNEL(ring_EarlyRelease, 64) { ring_copy<EarlyRelease>(p); }
KERNEL(ring_NoRelease, 64) { ring_copy<NoRelease>(p); }
KERNEL(ring_NoStoreWait, 64) { ring_copy<NoStoreWait>(p); }
KERNEL(ring_NoStoreCommit, 64) { ring_copy<NoStoreCommit>(p); }
KERNEL(ring_TooFar, 64) { ring_copy<TooFar>(p); }
KERNEL(ring_ShortCopy, 64) { ring_copy<ShortCopy>(p); }
KERNEL(ring_NoGet, 64) { ring_copy<NoGet>(p); }
KERNEL(ring_Unaligned, 64) { ring_copy<Unaligned>(p); }

// ---- tiles from a counter, handed on through a ring of numbers that one warp reads, one skips
KERNEL(numbers, 96) {
  SHARED_BASE(smem);
  const int thread = thread_index(), lane = thread % 32, warp = uniform(thread / 32);
  if (thread == 0) {
    Ring<2>::init(smem, 2);
    mbar_init_fence();
  }
  sync_cta();
  Ring<2> T(smem);
  if (warp == 0 && lane == 0) {
    for (int t = -1; t < p.tiles;) {
      t = global_add(p.counter, 1);
      T.claim();
      shared_store_i32(smem + 32 + 4 * T.slot, t);
      T.publish();
      T.advance();
    }
  } else if (warp == 1) {
    int sum = 0;
    for (int t = -1; t < p.tiles; sum += t) {
      T.get();
      t = uniform(shared_load_i32(smem + 32 + 4 * T.slot));
      T.release(0, lane);
      T.advance();
    }
    store_f32(p.f, lane, (float)sum);
  } else if (warp == 2) {
    for (int t = 0; t <= p.tiles; ++t) T.skip(lane);
  }
}

// ---- lanes
KERNEL(lanes, 64) {
  const int thread = thread_index(), warp = uniform(thread / 32);
  float x = (float)(thread % 32);
  x += lane_xor(x, 1);
  x += lane_xor(x, 16);
  const bool any = vote_any(thread == 40);
  store_f32(p.f, thread, x + (any ? 1000.f : 0.f) + 10000.f * warp);
}
KERNEL(lanes_ask, 64) {
  const int thread = thread_index();
  store_f32(p.f, thread, lane_from((float)thread, thread * 5 % 32));
}
KERNEL(lanes_ask_outside, 32) { lane_from(1.f, thread_index() + 1); }
KERNEL(lanes_differ, 32) { uniform(thread_index() / 16); }
KERNEL(lanes_diverge, 32) {
  if (thread_index() < 5) vote_any(true);
  else lane_xor(1.f, 1);
}
KERNEL(lanes_exit, 32) {
  ROLE("vote");
  if (thread_index() < 30) vote_any(true);
}

// ---- turns: each group adds to what the one before it left
template <int BUG> DEVICE void turns(const Params& p) {
  SHARED_BASE(smem);
  const int thread = thread_index(), group = uniform(thread / 128);
  if (thread == 0) shared_store_i32(smem, 1);
  sync_cta();
  Turn<2> A(4, group);
  for (int i = 0; i < 4; ++i) {
    if (BUG != 1) A.enter();
    const int x = shared_load_i32(smem);
    bar_sync(1 + group, 128);
    if (thread % 128 == 0) shared_store_i32(smem, 2 * x + group);
    bar_sync(1 + group, 128);
    if (BUG != 2) A.leave();
  }
  sync_cta();
  if (thread == 0) store_f32(p.f, 0, (float)shared_load_i32(smem));
}
KERNEL(turns_right, 256) { turns<0>(p); }
KERNEL(turns_no_enter, 256) { turns<1>(p); }
KERNEL(turns_no_leave, 256) { turns<2>(p); }

// ---- named barriers
KERNEL(barrier_short, 128) {
  ROLE("all");
  if (thread_index() < 96) bar_sync(3, 128);
}
KERNEL(barrier_counts, 128) { bar_sync(3, thread_index() < 64 ? 128 : 96); }
KERNEL(barrier_number, 128) { bar_sync(16, 128); }

// ---- barriers in shared memory
KERNEL(mbarrier_twice, 32) {
  SHARED_BASE(smem);
  if (thread_index() == 0) {
    mbar_init(smem, 1);
    mbar_init_fence();
    mbar_expect(smem, 16);
    mbar_arrive(smem);
  }
}
KERNEL(mbarrier_written, 32) {
  SHARED_BASE(smem);
  if (thread_index() == 0) {
    mbar_init(smem + 8, 1);
    shared_store_i32(smem + 12, 1);
  }
}

// ---- shared memory
KERNEL(shared_outside, 32) { SHARED_BASE(smem); shared_store_i32(smem + 32768, 1); }
KERNEL(shared_misaligned, 32) { SHARED_BASE(smem); shared_store_i32(smem + 2, 1); }
KERNEL(shared_unwritten, 32) { SHARED_BASE(smem); shared_load_i32(smem); }
template <int BUG> DEVICE void staged(const Params& p) {
  SHARED_BASE(smem);
  const int thread = thread_index(), lane = thread % 32, warp = uniform(thread / 32);
  const int row = 16 * warp + lane % 16;
  UNROLL for (int r = 0; r < 4; ++r) {
    const float x = (float)(16 * warp + lane / 4), y = (float)(16 * r + 2 * (lane % 4));
    stmatrix_x4(smem + row * 128 + ((2 * r + lane / 16) ^ (row & 7)) * 16, pack_bf16(x, y),
                pack_bf16(x + 8, y), pack_bf16(x, y + 8), pack_bf16(x + 8, y + 8));
  }
  if (BUG != 1) fence_async();
  if (BUG != 2) bar_sync(1, 128);
  if (thread == 0) {
    tma_store(&p.out, smem, 0, 0);
    tma_commit();
    tma_wait_read<0>();
  }
}
KERNEL(staged_right, 128) { staged<0>(p); }
KERNEL(staged_no_fence, 128) { staged<1>(p); }
KERNEL(staged_no_sync, 128) { staged<2>(p); }

// ---- ldmatrix and mma: a 16 x 16 tile of p.in, in rows of 32 bytes, times its own transpose
KERNEL(small, 32) {
  SHARED_BASE(smem);
  const int lane = thread_index();
  const u16* from = p.small;
  for (int i = lane; i < 128; i += 32) {
    const u32 pair = pack_bf16(load_bf16(from, 2 * i), load_bf16(from, 2 * i + 1));
    shared_store_i32(smem + 4 * i, (int)pair);
  }
  sync_cta();
  u32 a[4], b[4];
  ldmatrix_x4(smem + lane % 16 * 32 + lane / 16 * 16, a);
  ldmatrix_x4(smem + (lane % 8 + lane / 16 * 8) * 32 + lane / 8 % 2 * 16, b);
  float d[8];
  for (int i = 0; i < 8; ++i) d[i] = 1.f;
  mma_bf16(d, 0, a, b[0], b[1]);
  mma_bf16(d, 4, a, b[2], b[3]);
  for (int i = 0; i < 8; ++i)
    store_f32(p.f, (lane / 4 + i / 2 % 2 * 8) * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2, d[i]);
}

// ---- others
KERNEL(registers_right, 384) {
  if (uniform(thread_index() / 128) == 0) registers_down<24>();
  else registers_up<240>();
}
KERNEL(registers_beyond, 384) {
  ROLE("compute");
  if (uniform(thread_index() / 128) == 0) registers_down<32>();
  else registers_up<240>();
}
KERNEL(global_outside, 32) { store_f32(p.f, 1024, 1.f); }  // just behind the last
KERNEL(early_right, 32) {
  wait_for_kernels_in_front();
  store_f32(p.f, thread_index(), 1.f);
}
KERNEL(early_wrong, 32) {
  store_f32(p.f, thread_index(), 1.f);
  wait_for_kernels_in_front();
}
KERNEL(erf_values, 32) {
  for (int i = thread_index(); i < 1024; i += 32) store_f32(p.f, i, erf_of((i - 512) / 100.f));
}
KERNEL(rank, 32) {
  SHARED_BASE(smem);
  if (thread_index() == 0) tma_store(&p.out, smem, 0, 0, 0);
}
KERNEL(endless, 32) { while (global_add(p.counter, 0) == 0) {} }
KERNEL(writes_the_same, 32) { while (global_add(p.counter, 0) == 0) store_f32(p.f, 0, 7.f); }
// Many calls for each element, but one element after the other.
KERNEL(long_launch, 32) {
  for (int i = 0; i < 32; ++i) {
    for (int k = 0; k < 1000; ++k) global_add(p.counter, 0);
    store_f32(p.f, 32 * thread_index() + i, 7.f);
  }
}
KERNEL(last_block, 32) {
  if (thread_index() == 0 && global_add(p.counter, 1) == block_count() - 1) {
    store_f32(p.f, 0, 7.f);
    global_set(p.counter, 0);
  }
}
)";

}  // namespace nautilus::emulator
