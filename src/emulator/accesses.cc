// SPDX-License-Identifier: Apache-2.0
//
// Ordinary reads and writes of shared memory, and the rules for them; accesses to global memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine.h"

namespace nautilus::emulator {

bool Cta::check_shared(Thread& thread, uint32_t address, int bytes, int alignment, int line) {
  const int64_t offset = int64_t{address} - SharedMemory::kBase;
  if (!memory.contains(address, bytes)) {
    machine.fail(thread, line,
                 fmt::format("access to {} bytes at smem{:+} leaves the {} bytes of shared memory",
                             bytes, offset, memory.size()));
    return false;
  }
  if (address % static_cast<uint32_t>(alignment) != 0) {
    machine.fail(thread, line,
                 fmt::format("address smem{:+} is not a multiple of {}", offset, alignment));
    return false;
  }
  return true;
}

// The pending work that touches a granule.
std::string Cta::pending_use(uint32_t address) {
  const uint32_t granule = address / 16 * 16;
  const auto covers = [&](const PendingCopy& copy) {
    return granule >= copy.box.address &&
           granule < copy.box.address + static_cast<uint32_t>(copy.box.bytes);
  };
  for (const PendingCopy& load : loads) {
    if (covers(load)) return fmt::format("the TMA load of line {} is still writing", load.line);
  }
  for (const Thread& thread : threads) {
    for (const PendingCopy& store : thread.open_stores) {
      if (covers(store)) return fmt::format("the TMA store of line {} may still read", store.line);
    }
    for (const auto& group : thread.stores) {
      for (const PendingCopy& store : group) {
        if (covers(store)) {
          return fmt::format("the TMA store of line {} may still read", store.line);
        }
      }
    }
  }
  const auto reads = [&](const MatrixGroup& group) {
    for (const Product& product : group.products) {
      for (const uint32_t at : product.granules) {
        if (at == granule) return product.line;
      }
    }
    return 0;
  };
  for (const Warp& warp : warps) {
    int line = reads(warp.open);
    for (const MatrixGroup& group : warp.groups) {
      if (line == 0) line = reads(group);
    }
    if (line != 0) {
      return fmt::format("the wgmma of line {} (warp {}) may still read", line, warp.index);
    }
  }
  return "other work still uses";
}

void Cta::publish(Warp& warp, Knowledge* to) {
  to->merge(warp.knows);
  ++warp.knows.periods[warp.clock];
}

std::string Cta::unordered_read(const Warp& warp, uint32_t address, std::string_view what) {
  const uint32_t offset = address - SharedMemory::kBase;
  const Granule& granule = memory.granule(address);
  if (granule.loads != 0) {
    return fmt::format("{} smem+{}, which {}", what, offset, pending_use(address));
  }
  if (!granule.is_written) {
    return fmt::format("{} smem+{}, which nothing has written", what, offset);
  }
  if (granule.barrier >= 0) {
    const auto barrier = static_cast<size_t>(granule.barrier);
    if (warp.knows.phases_of(phase_index(granule.barrier)) <= granule.phase) {
      return fmt::format("{} smem+{} without having waited for {}, with which it was loaded", what,
                         offset, describe_barrier(barriers[barrier]));
    }
  }
  return "";
}

void Cta::write_word(Thread& thread, uint32_t address, uint32_t bits, int line) {
  if (!check_shared(thread, address, 4, 4, line)) return;
  const uint32_t offset = address - SharedMemory::kBase;
  if (const int barrier = barrier_at[offset / 8]; barrier >= 0) {
    return machine.fail(thread, line,
                        fmt::format("write to smem+{} overwrites {}", offset,
                                    describe_barrier(barriers[static_cast<size_t>(barrier)])));
  }
  Granule& granule = memory.granule(address);
  if (granule.loads + granule.stores + granule.products != 0) {
    return machine.fail(thread, line,
                        fmt::format("write to smem+{}, which {}", offset, pending_use(address)));
  }
  const Warp& warp = thread.cta->warp_of(thread);
  const size_t own = warp.clock;
  const size_t word = offset / 4;
  if (const int reader = async_reads.unknown_to(warp.knows, SharedMemory::granule_index(address));
      reader >= 0) {
    return machine.fail(
        thread, line,
        fmt::format("write to smem+{}: that {} has waited for the copy or product that read "
                    "it is known through no barrier",
                    offset, describe_warp(*this, reader)));
  }
  if (const int other = std::max({word_reads.unknown_to(warp.knows, word),
                                  word_writes.unknown_to(warp.knows, word),
                                  word_combines.unknown_to(warp.knows, word)});
      other >= 0) {
    return machine.fail(thread, line,
                        fmt::format("write to smem+{}: that {} is done with what it read or "
                                    "wrote there is known through no barrier",
                                    offset, describe_warp(*this, other)));
  }
  word_writes.set(word, own, warp.knows.periods[own]);
  std::memcpy(memory.at(address), &bits, 4);
  granule.is_written = true;
  granule.barrier = -1;
  granule.dirty[offset / 4 % 4] = static_cast<uint16_t>(thread.index + 1);
  thread.dirty.push_back(address);
}

void Cta::write_remote(Thread& thread, uint32_t address, int rank, uint32_t bits, int line) {
  if (rank < 0 || static_cast<size_t>(rank) >= cluster.ctas.size()) {
    return machine.fail(
        thread, line, fmt::format("write to CTA {} of a cluster of {}", rank, cluster.ctas.size()));
  }
  Cta& target = *cluster.ctas[static_cast<size_t>(rank)];
  if (&target != this && thread.cluster_syncs == 0) {
    return machine.fail(thread, line,
                        fmt::format("write to CTA {}, which may not have begun: nothing has made "
                                    "all of the cluster meet (sync_cluster)",
                                    target.index));
  }
  if (target.is_over()) {
    return machine.fail(thread, line,
                        fmt::format("write to CTA {}, which has ended: nothing makes it wait "
                                    "(sync_cluster)",
                                    target.index));
  }
  const Warp& warp = warp_of(thread);
  if (&target != this) target.remote_arrivals[warp.clock] = warp.knows.periods[warp.clock];
  target.write_word(thread, address, bits, line);
}

uint32_t Cta::read_word(Thread& thread, uint32_t address, int line) {
  if (!check_shared(thread, address, 4, 4, line)) return 0;
  const Warp& warp = warp_of(thread);
  if (std::string why = unordered_read(warp, address, "read of"); !why.empty()) {
    machine.fail(thread, line, std::move(why));
  }
  const size_t reader = warp.clock;
  const size_t word = (address - SharedMemory::kBase) / 4;
  if (const int writer = std::max(word_writes.unknown_to(warp.knows, word),
                                  word_combines.unknown_to(warp.knows, word));
      writer >= 0) {
    machine.fail(thread, line,
                 fmt::format("read of smem+{}: that {} has written it is known through no "
                             "barrier",
                             4 * word, describe_warp(*this, writer)));
  }
  ordinary_reads.set(SharedMemory::granule_index(address), reader, warp.knows.periods[reader]);
  word_reads.set(word, reader, warp.knows.periods[reader]);
  uint32_t bits = 0;
  std::memcpy(&bits, memory.at(address), 4);
  return bits;
}

void* Cta::combine(Thread& thread, uint32_t address, int bytes, int line) {
  static uint64_t nowhere;
  if (!check_shared(thread, address, bytes, bytes, line)) return &nowhere;
  const Warp& warp = warp_of(thread);
  if (std::string why = unordered_read(warp, address, "combination with"); !why.empty())
    machine.fail(thread, line, std::move(why));
  for (uint32_t at = address; at < address + static_cast<uint32_t>(bytes); at += 4) {
    const size_t word = (at - SharedMemory::kBase) / 4;
    if (const int other = std::max(word_reads.unknown_to(warp.knows, word),
                                   word_writes.unknown_to(warp.knows, word));
        other >= 0)
      machine.fail(thread, line,
                   fmt::format("combination with smem+{}: that {} is done with what it read or "
                               "wrote there is known through no barrier",
                               4 * word, describe_warp(*this, other)));
    word_combines.set(word, warp.clock, warp.knows.periods[warp.clock]);
  }
  return memory.at(address);
}

void Cta::fence_async(Thread& thread) {
  const auto mark = static_cast<uint16_t>(thread.index + 1);
  for (const uint32_t address : thread.dirty) {
    uint16_t& writer = memory.granule(address).dirty[(address - SharedMemory::kBase) / 4 % 4];
    if (writer == mark) writer = 0;
    const Warp& warp = warp_of(thread);
    fenced_writes.set(SharedMemory::granule_index(address), warp.clock,
                      warp.knows.periods[warp.clock]);
  }
  thread.dirty.clear();
}

bool Machine::check_waited(const Thread& thread, bool is_write, int line) {
  if (!launch.is_early || thread.has_waited) return true;
  fail(thread, line,
       fmt::format("{} of global memory before earlier kernels have ended",
                   is_write ? "write" : "read"));
  return false;
}

bool Machine::check_global(const Thread& thread, const void* at, int64_t bytes, bool is_write,
                           int line) {
  if (!check_waited(thread, is_write, line)) return false;
  if (launch.buffers.empty()) return true;
  const auto first = reinterpret_cast<uintptr_t>(at);
  for (size_t k = 0; k < launch.buffers.size(); ++k) {
    const Buffer& buffer = launch.buffers[k];
    const auto begin = reinterpret_cast<uintptr_t>(buffer.at);
    // An empty buffer may be at address 0, and an address before it wraps.
    const auto size = static_cast<uintptr_t>(bytes);
    if (first >= begin && size <= buffer.bytes && first - begin <= buffer.bytes - size &&
        (buffer.is_writable || !is_write)) {
      progress.touch(k, first - begin, size, is_write, statistics.steps);
      return true;
    }
  }
  fail(thread, line,
       fmt::format("{} of {} bytes of global memory outside every buffer{}",
                   is_write ? "write" : "read", bytes, is_write ? " that may be written" : ""));
  return false;
}

}  // namespace nautilus::emulator
