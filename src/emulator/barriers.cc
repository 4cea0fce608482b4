// SPDX-License-Identifier: Apache-2.0
//
// Named barriers, which count warps, and barriers in shared memory, which count arrivals and bytes.
// The latter keep the number of all completed phases where the hardware has one bit of it, so that
// a wait that only the parity makes succeed is seen.
#include <fmt/format.h>

#include <algorithm>

#include "emulator/machine.h"

namespace nautilus::emulator {

// Whether the warp may go on.
bool Cta::arrive_named(Warp& warp, int id, int threads_expected, bool is_sync) {
  const Thread& first = threads[static_cast<size_t>(warp.index * kWarp)];
  const int all = machine.launch.threads;
  const int expected = threads_expected == 0 ? all : threads_expected;
  if (id < 0 || id > 15) {
    machine.fail(first, warp.line, fmt::format("named barrier {}: there are 16", id));
    return false;
  }
  if (expected < kWarp || expected > all || expected % kWarp != 0) {
    machine.fail(first, warp.line,
                 fmt::format("named barrier {} of {} threads in a CTA of {}", id, expected, all));
    return false;
  }
  NamedBarrier& barrier = named[static_cast<size_t>(id)];
  if (barrier.arrived > 0 && barrier.expected != expected) {
    machine.fail(first, warp.line,
                 fmt::format("named barrier {} is used for {} and for {} threads at the same time",
                             id, barrier.expected, expected));
    return false;
  }
  const uint64_t bit = uint64_t{1} << warp.index;
  if ((barrier.arrived_warps & bit) != 0) {
    machine.fail(first, warp.line,
                 fmt::format("warp {} arrives at named barrier {} again before it has completed: "
                             "{} of {} threads are there",
                             warp.index, id, barrier.arrived, expected));
    return false;
  }
  barrier.expected = expected;
  barrier.arrived += kWarp;
  barrier.arrived_warps |= bit;
  publish(warp, &barrier.arrived_with);
  if (is_sync) {
    barrier.waiting_warps |= bit;
    for (int lane = 0; lane < kWarp; ++lane) {
      threads[static_cast<size_t>(warp.index * kWarp + lane)].wait = {
          .kind = WaitKind::Named, .line = warp.line, .barrier = id};
    }
  }
  if (barrier.arrived < expected) {
    if (is_sync) warp.ready = 0;
    return !is_sync;
  }
  const uint64_t waiting = barrier.waiting_warps;
  for (Warp& other : warps) {
    if ((waiting >> other.index & 1) != 0) other.knows.merge(barrier.arrived_with);
  }
  barrier = {};
  for (Thread& thread : threads) {
    if ((waiting >> thread.warp() & 1) == 0) continue;
    if (expected == all) ++thread.syncs;
    wake(thread);
  }
  return true;
}

void Cta::init_barrier(Thread& thread, uint32_t at, int count, int line) {
  if (!check_shared(thread, at, 8, 8, line)) return;
  if (count < 1 || count >= 1 << 20) {
    return machine.fail(thread, line, fmt::format("mbarrier with a count of {}", count));
  }
  int& which = barrier_at[(at - SharedMemory::kBase) / 8];
  if (which < 0) {
    which = static_cast<int>(barriers.size());
    barriers.emplace_back();
  }
  PhaseBarrier& barrier = barriers[static_cast<size_t>(which)];
  if (!barrier.waiters.empty()) {
    return machine.fail(
        thread, line,
        fmt::format("{} is initialised again while threads wait at it", describe_barrier(barrier)));
  }
  barrier = {};
  barrier.address = at;
  barrier.count = count;
  barrier.pending = count;
  barrier.init_thread = thread.index;
  barrier.init_line = line;
}

void Cta::fence_barriers(Thread& thread) {
  for (PhaseBarrier& barrier : barriers) {
    if (barrier.init_thread != thread.index || barrier.is_fenced) continue;
    barrier.is_fenced = true;
    barrier.fence_syncs = thread.syncs;
    barrier.fence_cluster_syncs = thread.cluster_syncs;
  }
}

PhaseBarrier* Cta::find_barrier(Thread& thread, uint32_t at, int line) {
  if (!check_shared(thread, at, 8, 8, line)) return nullptr;
  const int which = barrier_at[(at - SharedMemory::kBase) / 8];
  if (which < 0) {
    machine.fail(thread, line,
                 fmt::format("the mbarrier at smem+{}{} is used but was never initialised",
                             at - SharedMemory::kBase,
                             thread.cta == this ? "" : fmt::format(" of CTA {}", index)));
    return nullptr;
  }
  PhaseBarrier& barrier = barriers[static_cast<size_t>(which)];
  if (!barrier.is_fenced) {
    machine.fail(thread, line,
                 fmt::format("{} is used before mbar_init_fence by the thread that initialised it "
                             "(line {})",
                             describe_barrier(barrier), barrier.init_line));
    return nullptr;
  }
  if (thread.cta != this && thread.cluster_syncs <= barrier.fence_cluster_syncs) {
    machine.fail(thread, line,
                 fmt::format("{} of CTA {} is used before a cluster-wide barrier after its "
                             "initialisation (line {})",
                             describe_barrier(barrier), index, barrier.init_line));
    return nullptr;
  }
  if (thread.cta == this && thread.index != barrier.init_thread &&
      thread.syncs <= barrier.fence_syncs) {
    machine.fail(thread, line,
                 fmt::format("{} is used before a CTA-wide barrier after its initialisation (line "
                             "{})",
                             describe_barrier(barrier), barrier.init_line));
    return nullptr;
  }
  return &barrier;
}

void Cta::arrive(Thread& thread, PhaseBarrier& barrier, int line) {
  if (barrier.pending == 0) {
    return machine.fail(thread, line,
                        fmt::format("{} gets more than its {} arrivals in one phase",
                                    describe_barrier(barrier), barrier.count));
  }
  --barrier.pending;
  publish(thread.cta->warp_of(thread), &barrier.arriving);
  complete_phases(barrier);
}

void Cta::arrive_remote(Thread& thread, uint32_t at, int rank, int line) {
  if (rank < 0 || static_cast<size_t>(rank) >= cluster.ctas.size()) {
    return machine.fail(
        thread, line,
        fmt::format("arrival at CTA {} of a cluster of {}", rank, cluster.ctas.size()));
  }
  Cta& target = *cluster.ctas[static_cast<size_t>(rank)];
  if (target.is_over()) {
    return machine.fail(thread, line,
                        fmt::format("arrival at a barrier of CTA {}, which has ended: nothing "
                                    "makes it wait (sync_cluster)",
                                    target.index));
  }
  PhaseBarrier* barrier = target.find_barrier(thread, at, line);
  if (barrier == nullptr) return;
  const Warp& warp = warp_of(thread);
  if (&target != this) target.remote_arrivals[warp.clock] = warp.knows.periods[warp.clock];
  target.arrive(thread, *barrier, line);
}

// Whether the warp may go on.
bool Cta::arrive_cluster(Warp& warp) {
  publish(warp, &cluster.arrived_with);
  for (int lane = 0; lane < kWarp; ++lane) {
    threads[static_cast<size_t>(warp.index * kWarp + lane)].wait = {.kind = WaitKind::Cluster,
                                                                    .line = warp.line};
  }
  if (++cluster.arrived < static_cast<int>(cluster.ctas.size() * warps.size())) {
    warp.ready = 0;
    return false;
  }
  for (const auto& cta : cluster.ctas) {
    for (Warp& other : cta->warps) other.knows.merge(cluster.arrived_with);
    for (Thread& thread : cta->threads) {
      ++thread.syncs;
      ++thread.cluster_syncs;
      cta->wake(thread);
    }
  }
  cluster.arrived = 0;
  cluster.arrived_with = {};
  return true;
}

size_t Cta::phase_index(int barrier) const {
  return static_cast<size_t>(barrier) * cluster.ctas.size() + static_cast<size_t>(rank());
}

void Cta::complete_phases(PhaseBarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.completed;
  barrier.pending = barrier.count;
  barrier.published.merge(barrier.arriving);
  barrier.arriving = {};
  // Each thread checks whether this was its phase.
  for (const int waiter : barrier.waiters) wake(threads[static_cast<size_t>(waiter)]);
  barrier.waiters.clear();
}

void Cta::wait_phase(Thread& thread, uint32_t at, int parity, int64_t phases, int line) {
  PhaseBarrier* barrier = find_barrier(thread, at, line);
  while (barrier != nullptr) {
    const int64_t completed = barrier->completed;
    if (phases >= 0 && (completed > phases || completed < phases - 1)) {
      return machine.fail(
          thread, line,
          fmt::format("{}: a wait for {} completed phases meets {}; a parity tells neighbouring "
                      "phases apart only",
                      describe_barrier(*barrier), phases, completed));
    }
    const auto which = static_cast<int>(barrier - barriers.data());
    if ((completed & 1) != parity) {
      Knowledge& knows = warp_of(thread).knows;
      knows.see_phase(phase_index(which), completed);
      return knows.merge(barrier->published);
    }
    barrier->waiters.push_back(thread.index);
    block(thread, {.kind = WaitKind::Phase,
                   .line = line,
                   .barrier = which,
                   .parity = parity,
                   .phases = phases});
    barrier = &barriers[static_cast<size_t>(which)];
  }
}

}  // namespace nautilus::emulator
