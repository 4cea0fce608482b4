// SPDX-License-Identifier: Apache-2.0
// Words for reports.
#include <fmt/format.h>

#include <bit>
#include <map>

#include "emulator/machine.h"

namespace nautilus::emulator {

std::string_view collective_name(Collective kind) {
  switch (kind) {
    case Collective::SyncWarp:
      return "the meeting of the warp";
    case Collective::Uniform:
      return "uniform";
    case Collective::LaneXor:
      return "lane_xor";
    case Collective::LaneFrom:
      return "lane_from";
    case Collective::VoteAny:
      return "vote_any";
    case Collective::Stmatrix:
      return "stmatrix_x4";
    case Collective::Ldmatrix:
      return "ldmatrix_x4";
    case Collective::Mma:
      return "mma";
    case Collective::BarSync:
      return "bar_sync";
    case Collective::BarArrive:
      return "bar_arrive";
    case Collective::ClusterSync:
      return "sync_cluster";
    case Collective::Registers:
      return "registers_up or registers_down";
    case Collective::WgmmaFence:
      return "wgmma_fence";
    case Collective::Wgmma:
      return "wgmma";
    case Collective::WgmmaCommit:
      return "wgmma_commit";
    case Collective::WgmmaWait:
      return "wgmma_wait";
  }
  return "";
}

namespace {

// Numbers in order as "0-3, 7".
std::string ranges(const std::vector<int>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", numbers[i]);
    if (last > i) out += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return out;
}

std::string role_of(const Thread& thread) { return *thread.role == '\0' ? "no role" : thread.role; }

}  // namespace

std::string describe_thread(const Thread& thread) {
  return fmt::format("{}: warp {} lane {} of CTA {}", role_of(thread), thread.warp(), thread.lane(),
                     thread.cta->index);
}

std::string describe_lanes(uint32_t mask) {
  std::vector<int> lanes;
  for (int lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) != 0) lanes.push_back(lane);
  }
  return ranges(lanes);
}

std::string describe_warp(const Cta& cta, int clock) {
  const auto warps = static_cast<int>(cta.warps.size());
  const Cta& owner = *cta.cluster.ctas[static_cast<size_t>(clock / warps)];
  if (&owner == &cta) return fmt::format("warp {}", clock % warps);
  return fmt::format("warp {} of CTA {}", clock % warps, owner.index);
}

std::string describe_barrier(const PhaseBarrier& barrier) {
  const uint32_t offset = barrier.address - SharedMemory::kBase;
  if (barrier.slot < 0) return fmt::format("the mbarrier at smem+{}", offset);
  return fmt::format("the {} barrier of slot {} of {} of the ring at smem+{}",
                     barrier.is_full ? "full" : "empty", barrier.slot, barrier.slots,
                     barrier.ring - SharedMemory::kBase);
}

std::string describe_wait(const Thread& thread) {
  const Cta& cta = *thread.cta;
  const Wait& wait = thread.wait;
  switch (wait.kind) {
    case WaitKind::None:
      return "can run";
    case WaitKind::Phase: {
      const PhaseBarrier& barrier = cta.barriers[static_cast<size_t>(wait.barrier)];
      std::string out =
          fmt::format("waiting for {}, phase {}: {} of {} arrivals missing",
                      describe_barrier(barrier), barrier.completed, barrier.pending, barrier.count);
      if (barrier.bytes > 0) out += fmt::format(", {} bytes missing", barrier.bytes);
      if (barrier.bytes < 0) out += fmt::format(", {} bytes not announced", -barrier.bytes);
      return out;
    }
    case WaitKind::Named: {
      const NamedBarrier& barrier = cta.named[static_cast<size_t>(wait.barrier)];
      return fmt::format("waiting for named barrier {}: {} of {} threads are there", wait.barrier,
                         barrier.arrived, barrier.expected);
    }
    case WaitKind::Cluster:
      return fmt::format("waiting for all of the cluster: {} of {} warps are there",
                         cta.cluster.arrived, cta.cluster.ctas.size() * cta.warps.size());
    case WaitKind::Lanes: {
      const Warp& warp = cta.warps[static_cast<size_t>(thread.warp())];
      return fmt::format("waiting at {} for lanes {} of its warp", collective_name(warp.collective),
                         describe_lanes(~warp.arrived));
    }
    case WaitKind::Registers:
      return fmt::format(
          "waiting for {} registers per thread: {} more are needed, {} are free", wait.registers,
          (wait.registers - cta.warps[static_cast<size_t>(thread.warp())].registers) * kWarp,
          cta.free_registers);
  }
  return "";
}

std::string describe_source(const Machine& machine, int line) {
  if (line == 0) return "";
  return fmt::format("  --> line {}: {}\n", line, machine.body.line_text(line));
}

namespace {

// Threads with the same reason to wait.
struct Waiting {
  std::string role;
  std::string what;
  int line;
  std::map<int, uint32_t> lanes;  // of warps
};

// Keyed by what they have in common, in the order of their first thread.
std::vector<Waiting> waiting_in(const Cta& cta) {
  std::vector<Waiting> all;
  for (const Thread& thread : cta.threads) {
    if (thread.is_finished) continue;
    const std::string role = role_of(thread);
    const std::string what = describe_wait(thread);
    Waiting* entry = nullptr;
    for (Waiting& other : all) {
      if (other.role == role && other.what == what && other.line == thread.wait.line) {
        entry = &other;
      }
    }
    if (entry == nullptr) {
      all.push_back({role, what, thread.wait.line, {}});
      entry = &all.back();
    }
    entry->lanes[thread.warp()] |= 1u << thread.lane();
  }
  return all;
}

std::vector<int> returned_warps(const Cta& cta) {
  std::vector<int> returned;
  for (size_t first = 0; first < cta.threads.size(); first += kWarp) {
    int finished = 0;
    for (size_t lane = 0; lane < kWarp; ++lane) finished += cta.threads[first + lane].is_finished;
    if (finished == kWarp) returned.push_back(cta.threads[first].warp());
  }
  return returned;
}

std::string describe_threads(const std::map<int, uint32_t>& lanes) {
  std::vector<int> whole;
  std::string parts;
  for (const auto& [warp, mask] : lanes) {
    if (mask == ~0u) {
      whole.push_back(warp);
    } else {
      parts += fmt::format("{}warp {} {} {}", parts.empty() ? "" : ", ", warp,
                           std::has_single_bit(mask) ? "lane" : "lanes", describe_lanes(mask));
    }
  }
  std::string out;
  if (!whole.empty()) {
    out = fmt::format("{} {}", whole.size() == 1 ? "warp" : "warps", ranges(whole));
  }
  if (!parts.empty()) out += (out.empty() ? "" : ", ") + parts;
  return out;
}

}  // namespace

std::string describe_deadlock(const Machine& machine, const std::vector<Cta*>& ctas) {
  std::string out = "deadlock: nobody can run and no copy is under way\n";
  for (const Cta* cta : ctas) {
    for (const auto& other : cta->cluster.ctas) {
      if (other->is_over())
        out += fmt::format("CTA {}, of the same cluster as CTA {}, has ended\n", other->index,
                           cta->index);
    }
    if (const std::vector<int> returned = returned_warps(*cta); !returned.empty()) {
      out += fmt::format("CTA {}: {} {} returned\n", cta->index,
                         returned.size() == 1 ? "warp" : "warps", ranges(returned));
    }
    for (const Waiting& entry : waiting_in(*cta)) {
      out += fmt::format("CTA {}, {}, {}: {}\n{}", cta->index, entry.role,
                         describe_threads(entry.lanes), entry.what,
                         describe_source(machine, entry.line));
    }
  }
  return out + fmt::format("  (seed {})\n", machine.options.seed);
}

}  // namespace nautilus::emulator
