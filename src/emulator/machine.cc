// SPDX-License-Identifier: Apache-2.0
//
// Scheduling. Warps have random priorities and the highest that can run does, so that others starve
// for a while; a fair order would hide most missing synchronisation. Pending work is done with a
// chance that changes from epoch to epoch and is often 0: a kernel must survive late work.
#include "emulator/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/residents.h"

namespace nautilus::emulator {
namespace {

void run_thread(void* argument) {
  auto& thread = *static_cast<Thread*>(argument);
  Machine& machine = thread.cta->machine;
  machine.kernel(machine.params);
  thread.is_finished = true;
  Fiber::suspend();
}

}  // namespace

Machine*& running_machine() {
  thread_local Machine* machine = nullptr;
  return machine;
}

Cta::Cta(Machine& owner, Cluster& owning_cluster, int number, Stacks& stacks)
    : machine(owner),
      cluster(owning_cluster),
      index(number),
      memory(owner.launch.shared_bytes),
      async_reads(memory.granule_count(),
                  static_cast<size_t>(owner.cluster * owner.launch.threads / kWarp)),
      ordinary_reads(async_reads),
      word_reads(4 * memory.granule_count(),
                 static_cast<size_t>(owner.cluster * owner.launch.threads / kWarp)),
      word_writes(word_reads),
      word_combines(word_reads),
      fenced_writes(async_reads) {
  const auto count = static_cast<size_t>(owner.launch.threads);
  remote_arrivals.resize(static_cast<size_t>(owner.cluster) * count / kWarp);
  threads = std::vector<Thread>(count);
  warps = std::vector<Warp>(count / kWarp);
  barrier_at.assign((memory.size() + 15) / 8, -1);
  logs.resize((warps.size() + kWarpsPerGroup - 1) / kWarpsPerGroup);
  const int at_launch =
      owner.limits.registers(owner.launch.threads, owner.ctas_per_sm);  // per thread
  for (size_t i = 0; i < warps.size(); ++i) {
    warps[i].cta = this;
    warps[i].index = static_cast<int>(i);
    warps[i].priority = owner.random.next();
    warps[i].registers = at_launch;
    warps[i].clock = static_cast<size_t>(rank()) * warps.size() + i;
    warps[i].knows.periods.resize(static_cast<size_t>(owner.cluster) * warps.size());
    warps[i].knows.periods[warps[i].clock] = 1;
  }
  for (size_t i = 0; i < count; ++i) {
    threads[i].cta = this;
    threads[i].index = static_cast<int>(i);
    threads[i].fiber.start(stacks.bottom(static_cast<int>(i)), stacks.bytes(), run_thread,
                           &threads[i]);
  }
}

int Cta::rank() const { return index % machine.cluster; }

Cluster::Cluster(Machine& machine, int index, const std::vector<Stacks*>& stacks) {
  for (size_t i = 0; i < stacks.size(); ++i) {
    const int number = index * machine.cluster + static_cast<int>(i);
    ctas.push_back(std::make_unique<Cta>(machine, *this, number, *stacks[i]));
  }
}

bool Cluster::is_over() const {
  return std::all_of(ctas.begin(), ctas.end(), [](const auto& cta) { return cta->is_over(); });
}

void Cta::block(Thread& thread, const Wait& wait) {
  thread.wait = wait;
  warp_of(thread).ready &= ~(1u << thread.lane());
  Fiber::suspend();
}

void Cta::wake(Thread& thread) {
  thread.wait = {};
  warp_of(thread).ready |= 1u << thread.lane();
}

Thread* Cta::pick() {
  Warp* best = nullptr;
  for (Warp& warp : warps) {
    if (warp.ready != 0 && (best == nullptr || warp.priority > best->priority)) best = &warp;
  }
  if (best == nullptr) return nullptr;
  const int first = machine.first_lane;
  const int lane = (std::countr_zero(std::rotr(best->ready, first)) + first) % kWarp;
  return &threads[static_cast<size_t>(best->index * kWarp + lane)];
}

// Whether something was done.
bool Cta::do_async() {
  base::Random& random = machine.random;
  if (!loads.empty() && random.chance(machine.load_chance)) {
    finish_load(random.next() % loads.size());
    return true;
  }
  if (unread_stores > 0 && random.chance(machine.store_chance)) {
    auto skip = static_cast<int64_t>(random.next() % static_cast<uint64_t>(unread_stores));
    const auto visit = [&](std::vector<PendingCopy>& copies) {
      for (PendingCopy& store : copies) {
        if (store.is_done || skip-- > 0) continue;
        finish_store(store);
        return true;
      }
      return false;
    };
    for (Thread& thread : threads) {
      if (visit(thread.open_stores)) return true;
      for (auto& group : thread.stores) {
        if (visit(group)) return true;
      }
    }
  }
  if (waiting_groups > 0 && random.chance(machine.product_chance)) {
    const size_t first = random.next() % warps.size();
    for (size_t i = 0; i < warps.size(); ++i) {
      Warp& warp = warps[(first + i) % warps.size()];
      for (MatrixGroup& group : warp.groups) {
        if (group.is_executed) continue;
        execute(warp, group);
        return true;
      }
    }
  }
  return false;
}

// Checks what must be over when all threads have returned.
void Cta::check_exit() {
  for (const Thread& thread : threads) {
    for (const PendingCopy& store : thread.open_stores) {
      return machine.fail(thread, store.line,
                          "the kernel ends with a TMA store that was never committed");
    }
    for (const auto& group : thread.stores) {
      for (const PendingCopy& store : group) {
        return machine.fail(thread, store.line,
                            "the kernel ends while a TMA store may still read shared memory: no "
                            "tma_wait_read covers it");
      }
    }
  }
  for (const Warp& warp : warps) at_exit.merge(warp.knows);
  for (const PendingCopy& load : loads) {
    return machine.fail(*load.thread, load.line, "the kernel ends while a TMA load is in flight");
  }
  for (const Warp& warp : warps) {
    const Thread& thread = threads[static_cast<size_t>(warp.index * kWarp)];
    if (!warp.open.products.empty()) {
      return machine.fail(thread, warp.open.products.front().line,
                          "the kernel ends with a wgmma that was never committed");
    }
    for (const MatrixGroup& group : warp.groups) {
      const int line = group.products.empty() ? 0 : group.products.front().line;
      return machine.fail(thread, line,
                          "the kernel ends with a wgmma group that was not waited for");
    }
    const Warp& first = warps[static_cast<size_t>(warp.group() * kWarpsPerGroup)];
    if (warp.group_steps != first.group_steps) {
      return machine.fail(
          thread, 0,
          fmt::format("warp group {} diverged: warp {} executed {} wgmma instructions, warp {} {}",
                      warp.group(), warp.index, warp.group_steps, first.index, first.group_steps));
    }
  }
}

// A CTA's shared memory is gone when it ends: of everything that others do to its barriers, some
// thread of it must have known.
void Cta::check_cluster_exit() {
  for (size_t clock = 0; clock < remote_arrivals.size(); ++clock) {
    if (remote_arrivals[clock] <= at_exit.periods[clock]) continue;
    const Cta& other = *cluster.ctas[clock / warps.size()];
    return machine.fail(
        other.threads[clock % warps.size() * kWarp], 0,
        fmt::format("CTA {} may end before {} has arrived at its barrier: nothing makes it wait "
                    "(sync_cluster)",
                    index, describe_warp(*this, static_cast<int>(clock))));
  }
}

Machine::Machine(const CompiledBody& compiled, const Launch& what, const Options& how)
    : body(compiled),
      launch(what),
      options(how),
      limits(how.limits ? *how.limits : target::default_target().limits),
      random(how.seed),
      progress(what.buffers) {}

void Machine::fail(const Thread& thread, int line, std::string message) {
  if (is_failed()) return;
  report = fmt::format("{}\n{}  by {} (seed {})\n", message, describe_source(*this, line),
                       describe_thread(thread), options.seed);
}

void Machine::fail(std::string message) {
  if (is_failed()) return;
  report = std::move(message);
  if (report.back() != '\n') report += '\n';
}

void Machine::leave_if_failed() {
  // The scheduler stops at a report, so this fiber is not resumed.
  if (is_failed()) Fiber::suspend();
}

void Machine::step(Thread& thread, int line) {
  if (progress.calls_without(++statistics.steps) > options.idle_limit) {
    fail(thread, line,
         fmt::format("no progress in {} calls: no CTA has ended, and no global memory was read or "
                     "written for the first time. The kernel loops, or a CTA has more to do at "
                     "these sizes: smaller ones tell, or a larger limit (run --idle-limit)",
                     options.idle_limit));
  }
  leave_if_failed();
  if (--interrupt_in > 0) return;
  interrupt_in = 1 + static_cast<int>(random.next() % static_cast<uint64_t>(interrupt_every));
  if (random.chance(0.5)) thread.cta->warp_of(thread).priority = random.next();
  Fiber::suspend();
}

void Machine::new_epoch() {
  constexpr double kChances[] = {0, 0, 1. / 64, 1. / 8, 1};
  constexpr int kInterrupts[] = {8, 64, 512, 1 << 20};
  epoch_left = random.integer(32, 1024);
  load_chance = kChances[random.next() % 5];
  store_chance = kChances[random.next() % 5];
  product_chance = kChances[random.next() % 5];
  interrupt_every = kInterrupts[random.next() % 4];
  interrupt_in = 1 + static_cast<int>(random.next() % static_cast<uint64_t>(interrupt_every));
  first_lane = static_cast<int>(random.next() % kWarp);
}

void Machine::run_all() {
  Residents residents(*this);
  const std::vector<Cta*>& ctas = residents.ctas();
  size_t which = 0;
  size_t stuck = 0;  // CTAs in a row that could do nothing
  while (!is_failed() && !ctas.empty()) {
    if (--epoch_left <= 0) {
      new_epoch();
      which = random.next() % ctas.size();
      stuck = 0;  // counts from here on
      Cta& cta = *ctas[which];
      cta.warps[random.next() % cta.warps.size()].priority = random.next();
    }
    Cta& cta = *ctas[which];
    if (cta.do_async()) continue;
    if (Thread* thread = cta.pick(); thread != nullptr) {
      stuck = 0;
      ++statistics.switches;
      current = thread;
      thread->fiber.resume();
      current = nullptr;
      if (!thread->is_finished || is_failed()) continue;
      cta.warp_of(*thread).ready &= ~(1u << thread->lane());
      ++cta.finished;
      if (cta.is_over() && !residents.end(which)) which = 0;
    } else if (!cta.loads.empty()) {
      // Only the arrival of data can wake anyone; stores and products are done at their waits.
      stuck = 0;
      cta.finish_load(random.next() % cta.loads.size());
    } else if (++stuck >= ctas.size()) {
      return fail(describe_deadlock(*this, ctas));
    } else {
      which = (which + 1) % ctas.size();
    }
  }
}

std::string Machine::run() {
  const auto symbol = [&](const char* suffix) { return body.symbol(launch.kernel + suffix); };
  const auto* threads = static_cast<const int*>(symbol("_threads"));
  const auto* parameter_bytes = static_cast<const unsigned long long*>(symbol("_parameter_bytes"));
  kernel = reinterpret_cast<void (*)(const void*)>(body.symbol(launch.kernel));
  const auto* ctas = static_cast<const int*>(symbol("_ctas"));
  if (kernel == nullptr || threads == nullptr || parameter_bytes == nullptr || ctas == nullptr) {
    return fmt::format("the body has no kernel `{}`\n", launch.kernel);
  }
  ctas_per_sm = *ctas;
  if (launch.threads < 1 || launch.threads > limits.cta_threads || launch.threads % kWarp != 0) {
    return fmt::format("launch with {} threads: must be a multiple of 32 up to {}\n",
                       launch.threads, limits.cta_threads);
  }
  if (launch.threads > *threads) {
    return fmt::format("launch with {} threads, kernel `{}` is compiled for {}\n", launch.threads,
                       launch.kernel, *threads);
  }
  if (launch.grid < 1) return fmt::format("launch with a grid of {}\n", launch.grid);
  // Only kernels with clusters have it.
  if (const auto* declared = static_cast<const int*>(symbol("_cluster"))) cluster = *declared;
  if (cluster < 1 || cluster > limits.cluster_ctas || launch.grid % cluster != 0) {
    return fmt::format("launch with a grid of {} in clusters of {}\n", launch.grid, cluster);
  }
  if (launch.shared_bytes < 0 || launch.shared_bytes > limits.shared_bytes()) {
    return fmt::format("launch with {} bytes of shared memory, a CTA can have {}\n",
                       launch.shared_bytes, limits.shared_bytes());
  }
  if (launch.param_bytes != *parameter_bytes) {
    return fmt::format("launch with {} bytes of parameters, kernel `{}` takes {}\n",
                       launch.param_bytes, launch.kernel, *parameter_bytes);
  }
  // Tensor maps are aligned to 64 bytes, the caller's copy perhaps not.
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::vector<Line> copy(launch.param_bytes / sizeof(Line) + 1);
  std::memcpy(copy.data(), launch.params, launch.param_bytes);
  params = copy.data();
  Machine*& running = running_machine();
  Machine* const outer = running;
  running = this;
  run_all();
  running = outer;
  return report;
}

std::string run(const CompiledBody& body, const Launch& launch, const Options& options,
                Statistics* statistics) {
  Machine machine(body, launch, options);
  std::string report = machine.run();
  if (statistics != nullptr) *statistics = machine.statistics;
  return report;
}

}  // namespace nautilus::emulator
