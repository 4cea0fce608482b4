// SPDX-License-Identifier: Apache-2.0
//
// The copy engine. A load makes its destination unreadable (all ones) when it is issued and fills
// it when it completes; a store reads its source when it completes. In between, any other use of
// the shared memory is a violation.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine.h"

namespace nautilus::emulator {
namespace {

int element_size(runtime::MapElement element) {
  switch (element) {
    case runtime::MapElement::U8:
      return 1;
    case runtime::MapElement::U16:
    case runtime::MapElement::F16:
    case runtime::MapElement::BF16:
      return 2;
    case runtime::MapElement::U32:
    case runtime::MapElement::F32:
      return 4;
  }
  return 0;
}

// Why a map cannot be meant, or an empty string.
std::string view_flaw(const runtime::TensorMapView& view, int rank) {
  if (view.rank < 1 || view.rank > runtime::kMaxMapRank) {
    return fmt::format("not a tensor map (rank {})", view.rank);
  }
  if (view.rank != rank) {
    return fmt::format("a copy with {} coordinates by a tensor map of rank {}", rank, view.rank);
  }
  const int size = element_size(view.element);
  for (int dim = 0; dim < rank; ++dim) {
    if (view.box[dim] < 1 || view.box[dim] > 256 || view.dims[dim] < 0) {
      return fmt::format("tensor map dimension {}: extent {}, box {}", dim, view.dims[dim],
                         view.box[dim]);
    }
    // The stride of an extent of 1 means nothing (runtime/tensor_map.h).
    if (dim > 0 && view.dims[dim] > 1 && (view.strides[dim] % 16 != 0 || view.strides[dim] < 0)) {
      return fmt::format("tensor map dimension {}: stride of {} bytes, not a multiple of 16", dim,
                         view.strides[dim]);
    }
  }
  if (view.step < 1 || view.step > 8 || (rank > 1 && (view.box[1] - 1) * view.step >= 256)) {
    return fmt::format("a tensor map whose box has {} elements in steps of {}", view.box[1],
                       view.step);
  }
  if (view.address % 16 != 0) return "a tensor map of an address that is not a multiple of 16";
  const int inner = view.box[0] * size;
  if (view.swizzle == layout::Swizzle::None ? inner % 16 != 0
                                            : inner != layout::span_bytes(view.swizzle)) {
    return fmt::format("a box row of {} bytes with swizzle {}: not modelled", inner,
                       layout::swizzle_name(view.swizzle));
  }
  return "";
}

// Calls row(linear, global, first, bytes) for every row of the box: its offset in the dense box and
// the bytes of it inside the tensor, `bytes` (perhaps 0) from byte `first` of the row, which are at
// `global`.
template <typename F>
void for_each_row(const Box& box, F&& row) {
  const runtime::TensorMapView& view = *box.view;
  const int size = element_size(view.element);
  const int64_t low = std::max<int64_t>(0, -int64_t{box.at[0]});
  const int64_t high = std::min<int64_t>(view.box[0], view.dims[0] - box.at[0]);
  const int row_bytes = view.box[0] * size;
  std::array<int, runtime::kMaxMapRank> place = {};
  int rows = 1;
  for (int dim = 1; dim < view.rank; ++dim) rows *= view.box[dim];
  for (int i = 0; i < rows; ++i) {
    bool is_inside = high > low;
    int64_t offset = (box.at[0] + low) * size;
    for (size_t dim = 1; dim < view.rank; ++dim) {
      const int64_t at = int64_t{box.at[dim]} + place[dim] * (dim == 1 ? view.step : 1);
      is_inside = is_inside && at >= 0 && at < view.dims[dim];
      offset += at * view.strides[dim];
    }
    const int64_t bytes = is_inside ? (high - low) * size : 0;
    auto* global = reinterpret_cast<unsigned char*>(
        is_inside ? view.address + static_cast<uint64_t>(offset) : 0);
    row(static_cast<uint32_t>(i * row_bytes), global, static_cast<size_t>(low * size),
        static_cast<size_t>(bytes));
    for (size_t dim = 1; dim < view.rank && ++place[dim] == view.box[dim]; ++dim) place[dim] = 0;
  }
}

}  // namespace

bool Cta::make_box(Thread& thread, const NamedBox& of, int line, Box* box) {
  const auto& [map, address, rank, at] = of;
  static_assert(sizeof(runtime::TensorMapView) <= sizeof(runtime::EncodedMap));
  box->view = static_cast<const runtime::TensorMapView*>(map);
  if (const std::string flaw = view_flaw(*box->view, rank); !flaw.empty()) {
    machine.fail(thread, line, flaw);
    return false;
  }
  if (at[0] * element_size(box->view->element) % 16 != 0) {
    machine.fail(thread, line,
                 fmt::format("a copy begins at element {} of a row, which is not a multiple of 16 "
                             "bytes: the device stops with an illegal instruction",
                             at[0]));
    return false;
  }
  std::copy(at, at + rank, box->at.begin());
  box->address = address;
  box->bytes = element_size(box->view->element);
  for (int dim = 0; dim < rank; ++dim) box->bytes *= box->view->box[dim];
  return check_shared(thread, address, box->bytes, 128, line);
}

void Cta::start_load(Thread& thread, const NamedBox& to, uint32_t bar, int line) {
  PendingCopy load = {.box = {}, .barrier = bar, .thread = &thread, .line = line};
  if (!machine.check_waited(thread, false, line)) return;
  if (!make_box(thread, to, line, &load.box)) return;
  const PhaseBarrier* full = find_barrier(thread, bar, line);
  if (full == nullptr) return;
  const Knowledge& knows = thread.cta->warp_of(thread).knows;
  const uint32_t end = to.address + static_cast<uint32_t>(load.box.bytes);
  for (uint32_t address = to.address; address < end; address += 16) {
    const uint32_t offset = address - SharedMemory::kBase;
    Granule& granule = memory.granule(address);
    if (granule.loads + granule.stores + granule.products != 0) {
      return machine.fail(
          thread, line, fmt::format("TMA load to smem+{}, which {}", offset, pending_use(address)));
    }
    if (granule.is_dirty()) {
      return machine.fail(thread, line,
                          fmt::format("TMA load to smem+{}, which has ordinary writes that were "
                                      "not fenced (fence_async)",
                                      offset));
    }
    const size_t index_in_memory = SharedMemory::granule_index(address);
    const int reader = std::max(async_reads.unknown_to(knows, index_in_memory),
                                ordinary_reads.unknown_to(knows, index_in_memory));
    if (reader >= 0) {
      return machine.fail(thread, line,
                          fmt::format("TMA load to smem+{}: that {} has read it is known "
                                      "through no barrier",
                                      offset, describe_warp(*this, reader)));
    }
    const int barrier = std::max(barrier_at[offset / 8], barrier_at[offset / 8 + 1]);
    if (barrier >= 0) {
      return machine.fail(thread, line,
                          fmt::format("TMA load to smem+{} overwrites {}", offset,
                                      describe_barrier(barriers[static_cast<size_t>(barrier)])));
    }
  }
  for (uint32_t address = to.address; address < end; address += 16) {
    Granule& granule = memory.granule(address);
    ++granule.loads;
    granule.is_written = true;
    granule.barrier = static_cast<int16_t>(full - barriers.data());
    granule.phase = static_cast<int32_t>(full->completed);
    const size_t which = SharedMemory::granule_index(address);
    async_reads.clear(which);
    ordinary_reads.clear(which);
    fenced_writes.clear(which);
    for (size_t word = 4 * which; word < 4 * which + 4; ++word) {
      word_reads.clear(word);
      word_writes.clear(word);
      word_combines.clear(word);
    }
  }
  std::memset(memory.at(to.address), 0xff, static_cast<size_t>(load.box.bytes));
  loads.push_back(load);
}

// Each CTA gets the box at the same place and its own barrier the bytes, whenever they arrive
// there.
void Cta::start_multicast(Thread& thread, const NamedBox& to, uint32_t bar, unsigned mask,
                          int line) {
  if (mask == 0 || mask >> cluster.ctas.size() != 0) {
    return machine.fail(
        thread, line,
        fmt::format("multicast to CTAs {:#x} of a cluster of {}", mask, cluster.ctas.size()));
  }
  for (size_t i = 0; i < cluster.ctas.size() && !machine.is_failed(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    Cta& target = *cluster.ctas[i];
    if (target.is_over()) {
      return machine.fail(thread, line,
                          fmt::format("multicast to CTA {}, which has ended", target.index));
    }
    target.start_load(thread, to, bar, line);
  }
}

void Cta::finish_load(size_t which) {
  const PendingCopy load = loads[which];
  loads[which] = loads.back();
  loads.pop_back();
  ++machine.statistics.copies;
  const Thread& thread = *load.thread;
  const layout::Swizzle swizzle = load.box.view->swizzle;
  const int row_bytes = load.box.view->box[0] * element_size(load.box.view->element);
  unsigned char buffer[1024];
  for_each_row(load.box, [&](uint32_t linear, const unsigned char* global, size_t first,
                             size_t bytes) {
    std::memset(buffer, 0, sizeof buffer);
    if (bytes > 0) {
      if (!machine.check_global(thread, global, static_cast<int64_t>(bytes), false, load.line)) {
        return;
      }
      std::memcpy(buffer + first, global, bytes);
    }
    for (int i = 0; i < row_bytes; i += 16) {
      const uint32_t at =
          layout::swizzled(load.box.address + linear + static_cast<uint32_t>(i), swizzle);
      std::memcpy(memory.at(at), buffer + i, 16);
    }
  });
  const uint32_t end = load.box.address + static_cast<uint32_t>(load.box.bytes);
  for (uint32_t at = load.box.address; at < end; at += 16) --memory.granule(at).loads;
  const int owner = barrier_at[(load.barrier - SharedMemory::kBase) / 8];
  PhaseBarrier& barrier = barriers[static_cast<size_t>(owner)];
  barrier.bytes -= load.box.bytes;
  complete_phases(barrier);
}

void Cta::start_store(Thread& thread, const NamedBox& from, int line) {
  PendingCopy store = {.box = {}, .thread = &thread, .line = line};
  if (!machine.check_waited(thread, true, line)) return;
  if (!make_box(thread, from, line, &store.box)) return;
  const uint32_t end = from.address + static_cast<uint32_t>(store.box.bytes);
  for (uint32_t address = from.address; address < end; address += 16) {
    const Granule& granule = memory.granule(address);
    if (std::string why = unordered_read(warp_of(thread), address, "TMA store from");
        !why.empty()) {
      return machine.fail(thread, line, std::move(why));
    }
    if (granule.is_dirty()) {
      const int writer = *std::max_element(granule.dirty, granule.dirty + 4) - 1;
      return machine.fail(
          thread, line,
          fmt::format("TMA store from smem+{}, written by warp {} lane {} without a fence_async "
                      "since",
                      address - SharedMemory::kBase, writer / kWarp, writer % kWarp));
    }
    const int other =
        fenced_writes.unknown_to(warp_of(thread).knows, SharedMemory::granule_index(address));
    if (other >= 0) {
      return machine.fail(thread, line,
                          fmt::format("TMA store from smem+{}: that {} has written it is known "
                                      "through no barrier",
                                      address - SharedMemory::kBase, describe_warp(*this, other)));
    }
  }
  for (uint32_t address = from.address; address < end; address += 16)
    ++memory.granule(address).stores;
  thread.open_stores.push_back(store);
  ++unread_stores;
}

void Cta::finish_store(PendingCopy& store) {
  store.is_done = true;
  --unread_stores;
  ++machine.statistics.copies;
  const Thread& thread = *store.thread;
  const layout::Swizzle swizzle = store.box.view->swizzle;
  const int row_bytes = store.box.view->box[0] * element_size(store.box.view->element);
  unsigned char buffer[1024];
  for_each_row(store.box, [&](uint32_t linear, unsigned char* global, size_t first, size_t bytes) {
    if (bytes == 0 ||
        !machine.check_global(thread, global, static_cast<int64_t>(bytes), true, store.line)) {
      return;
    }
    for (int i = 0; i < row_bytes; i += 16) {
      const uint32_t at =
          layout::swizzled(store.box.address + linear + static_cast<uint32_t>(i), swizzle);
      std::memcpy(buffer + i, memory.at(at), 16);
    }
    std::memcpy(global, buffer + first, bytes);
  });
}

void Cta::wait_stores(Thread& thread, int pending) {
  while (static_cast<int>(thread.stores.size()) > pending) {
    for (PendingCopy& store : thread.stores.front()) {
      if (!store.is_done) finish_store(store);
      const uint32_t end = store.box.address + static_cast<uint32_t>(store.box.bytes);
      const Warp& warp = warp_of(thread);
      const uint32_t period = warp.knows.periods[warp.clock];
      for (uint32_t at = store.box.address; at < end; at += 16) {
        --memory.granule(at).stores;
        async_reads.set(SharedMemory::granule_index(at), warp.clock, period);
      }
    }
    thread.stores.pop_front();
  }
}

}  // namespace nautilus::emulator
