// SPDX-License-Identifier: Apache-2.0
//
// The functions that kernels call. Each counts a step, which may let others run first, does its
// work, and does not return to the kernel after a violation.
#include <fmt/format.h>

#include "emulator/collectives.h"
#include "emulator/half.h"

namespace nautilus::emulator {
namespace {

Machine& machine() { return *running_machine(); }
Thread& thread() { return *machine().current; }

// Runs work(thread, cta) as one call of the current thread.
template <typename F>
void call(int line, F&& work) {
  Machine& m = machine();
  Thread& t = *m.current;
  m.step(t, line);
  work(t, *t.cta);
  m.leave_if_failed();
}

int thread_index() { return thread().index; }
int block_index() { return thread().cta->index; }
int block_count() { return machine().launch.grid; }
unsigned shared_base() { return SharedMemory::kBase; }
void role(const char* name) { thread().role = name; }
void wait_for_kernels_in_front() { thread().has_waited = true; }

void sync_warp(int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::SyncWarp, nullptr, line); });
}

int uniform(int x, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::Uniform, &x, line); });
  return x;
}

float lane_xor(float x, int mask, int line) {
  LaneXorArgument argument = {x, mask};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::LaneXor, &argument, line); });
  return argument.x;
}

float lane_from(float x, int lane, int line) {
  LaneFromArgument argument = {x, lane};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::LaneFrom, &argument, line); });
  return argument.x;
}

bool vote_any(bool x, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::VoteAny, &x, line); });
  return x;
}

void global_access(const void* at, int bytes, bool is_write, int line) {
  call(line, [&](Thread& t, Cta&) {
    if (reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(bytes) != 0) {
      machine().fail(t, line, fmt::format("global address is not a multiple of {}", bytes));
    }
    machine().check_global(t, at, bytes, is_write, line);
  });
}

int global_add(int* at, int x, int line) {
  global_access(at, 4, true, line);
  const int before = *at;
  *at = static_cast<int>(static_cast<unsigned>(before) + static_cast<unsigned>(x));
  return before;
}

void global_set(int* at, int x, int line) {
  global_access(at, 4, true, line);
  *at = x;
}

void global_fence(int line) {
  call(line, [](Thread&, Cta&) {});
}

void shared_store(unsigned address, unsigned bits, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.write_word(t, address, bits, line); });
}

unsigned shared_load(unsigned address, int line) {
  unsigned bits = 0;
  call(line, [&](Thread& t, Cta& cta) { bits = cta.read_word(t, address, line); });
  return bits;
}

void* shared_combine(unsigned address, int bytes, int line) {
  void* at = nullptr;
  call(line, [&](Thread& t, Cta& cta) { at = cta.combine(t, address, bytes, line); });
  return at;
}

void stmatrix_x4(unsigned address, const unsigned* registers, int line) {
  StmatrixArgument argument = {address, registers};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::Stmatrix, &argument, line); });
}

void ldmatrix_x4(unsigned address, unsigned* values, bool is_transposed, int line) {
  LdmatrixArgument argument = {address, values, is_transposed};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::Ldmatrix, &argument, line); });
}

void mma(float* d, const unsigned* a, const unsigned* b, bool is_f16, int line) {
  SmallProduct argument = {d, a, b, is_f16};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::Mma, &argument, line); });
}

void fence_async(int line) {
  call(line, [](Thread& t, Cta& cta) { cta.fence_async(t); });
}

void bar_sync(int id, int threads, int line) {
  BarrierArgument argument = {id, threads};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::BarSync, &argument, line); });
}

void bar_arrive(int id, int threads, int line) {
  BarrierArgument argument = {id, threads};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::BarArrive, &argument, line); });
}

void mbar_init(unsigned at, int count, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.init_barrier(t, at, count, line); });
}

void mbar_init_fence(int line) {
  call(line, [](Thread& t, Cta& cta) { cta.fence_barriers(t); });
}

void mbar_expect(unsigned at, int bytes, int line) {
  call(line, [&](Thread& t, Cta& cta) {
    PhaseBarrier* barrier = cta.find_barrier(t, at, line);
    if (barrier == nullptr) return;
    constexpr int kMaxBytes = (1 << 20) - 1;
    if (bytes < 0 || bytes > kMaxBytes) {
      return machine().fail(
          t, line, fmt::format("{} bytes announced, a barrier counts to {}", bytes, kMaxBytes));
    }
    barrier->bytes += bytes;
    cta.arrive(t, *barrier, line);
  });
}

void mbar_arrive(unsigned at, int line) {
  call(line, [&](Thread& t, Cta& cta) {
    if (PhaseBarrier* barrier = cta.find_barrier(t, at, line)) cta.arrive(t, *barrier, line);
  });
}

void mbar_arrive_remote(unsigned at, int rank, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.arrive_remote(t, at, rank, line); });
}

void shared_store_remote(unsigned address, int rank, unsigned bits, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.write_remote(t, address, rank, bits, line); });
}

void sync_cluster(int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::ClusterSync, nullptr, line); });
}

void mbar_wait(unsigned at, int parity, long long phases, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.wait_phase(t, at, parity, phases, line); });
}

void ring_init(unsigned at, int slots, int readers, int line) {
  call(line, [&](Thread& t, Cta& cta) {
    for (int i = 0; i < 2 * slots; ++i) {
      const unsigned address = at + 8 * static_cast<unsigned>(i);
      cta.init_barrier(t, address, i < slots ? 1 : readers, line);
      if (machine().is_failed()) return;
      const int index = cta.barrier_at[(address - SharedMemory::kBase) / 8];
      PhaseBarrier& barrier = cta.barriers[static_cast<size_t>(index)];
      barrier.ring = at;
      barrier.slot = i % slots;
      barrier.slots = slots;
      barrier.is_full = i < slots;
    }
  });
}

void tma_load(unsigned to, const void* map, unsigned bar, int rank, const int* at, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.start_load(t, {map, to, rank, at}, bar, line); });
}

void tma_load_all(unsigned to, const void* map, unsigned bar, unsigned mask, int rank,
                  const int* at, int line) {
  call(line, [&](Thread& t, Cta& cta) {
    cta.start_multicast(t, {map, to, rank, at}, bar, mask, line);
  });
}

void tma_store(const void* map, unsigned from, int rank, const int* at, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.start_store(t, {map, from, rank, at}, line); });
}

void tma_commit(int line) {
  call(line, [](Thread& t, Cta&) {
    t.stores.push_back(std::move(t.open_stores));
    t.open_stores.clear();
  });
}

void tma_wait_read(int pending, int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.wait_stores(t, pending); });
}

void registers(int count, bool is_up, int line) {
  RegistersArgument argument = {count, is_up};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::Registers, &argument, line); });
}

void wgmma_fence(int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::WgmmaFence, nullptr, line); });
}

void wgmma(const ProductCall* product, int line) {
  ProductCall argument = *product;
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::Wgmma, &argument, line); });
}

void wgmma_commit(int line) {
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::WgmmaCommit, nullptr, line); });
}

void wgmma_wait(int pending, const RegisterArray* arrays, int count, int line) {
  WaitArgument argument = {pending, arrays, count};
  call(line, [&](Thread& t, Cta& cta) { cta.collect(t, Collective::WgmmaWait, &argument, line); });
}

}  // namespace

const HostTable& host_table() {
  static const HostTable table = {
      .thread_index = thread_index,
      .block_index = block_index,
      .block_count = block_count,
      .shared_base = shared_base,
      .role = role,
      .wait_for_kernels_in_front = wait_for_kernels_in_front,
      .sync_warp = sync_warp,
      .uniform = uniform,
      .lane_xor = lane_xor,
      .lane_from = lane_from,
      .vote_any = vote_any,
      .to_f16 = f16_bits,
      .from_f16 = f16_value,
      .global_access = global_access,
      .global_add = global_add,
      .global_set = global_set,
      .global_fence = global_fence,
      .shared_store = shared_store,
      .shared_load = shared_load,
      .shared_combine = shared_combine,
      .stmatrix_x4 = stmatrix_x4,
      .ldmatrix_x4 = ldmatrix_x4,
      .mma = mma,
      .fence_async = fence_async,
      .bar_sync = bar_sync,
      .bar_arrive = bar_arrive,
      .mbar_init = mbar_init,
      .mbar_init_fence = mbar_init_fence,
      .mbar_expect = mbar_expect,
      .mbar_arrive = mbar_arrive,
      .mbar_arrive_remote = mbar_arrive_remote,
      .shared_store_remote = shared_store_remote,
      .sync_cluster = sync_cluster,
      .mbar_wait = mbar_wait,
      .ring_init = ring_init,
      .tma_load = tma_load,
      .tma_load_all = tma_load_all,
      .tma_store = tma_store,
      .tma_commit = tma_commit,
      .tma_wait_read = tma_wait_read,
      .registers = registers,
      .wgmma_fence = wgmma_fence,
      .wgmma = wgmma,
      .wgmma_commit = wgmma_commit,
      .wgmma_wait = wgmma_wait,
  };
  return table;
}

}  // namespace nautilus::emulator
