// SPDX-License-Identifier: Apache-2.0
//
// The state of an emulated launch. Everything happens on one thread of the host: the scheduler
// resumes a fiber, the fiber runs the kernel up to a call that has to wait, and pending copies and
// products are carried out in between. A violation is recorded with Machine::fail; the functions
// then return at once and the fiber that called is not resumed.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "emulator/emulator.h"
#include "emulator/fiber.h"
#include "emulator/host_table.h"
#include "emulator/knowledge.h"
#include "emulator/product.h"
#include "emulator/progress.h"
#include "emulator/shared_memory.h"
#include "runtime/tensor_map.h"

namespace nautilus::emulator {

inline constexpr int kWarp = 32;
inline constexpr int kWarpsPerGroup = 4;

struct Machine;
struct Cluster;
struct Cta;
struct Thread;
struct Warp;

enum class WaitKind : uint8_t { None, Phase, Named, Cluster, Lanes, Registers };

// What a thread that does not run waits for, and where in the body.
struct Wait {
  WaitKind kind = WaitKind::None;
  int line = 0;
  int barrier = -1;  // Phase: index into Cta::barriers; Named: its number
  int parity = 0;
  int64_t phases = -1;
  int registers = 0;
};

struct Box {
  const runtime::TensorMapView* view = nullptr;
  std::array<int, runtime::kMaxMapRank> at = {};
  uint32_t address = 0;  // in shared memory
  int bytes = 0;
};

// How a kernel names a box: by its place in a map. `address`: of its place in shared memory.
struct NamedBox {
  const void* map;
  uint32_t address;
  int rank;
  const int* at;
};

struct PendingCopy {
  Box box;
  uint32_t barrier = 0;            // loads only
  const Thread* thread = nullptr;  // of another CTA, if that one multicasts
  int line = 0;
  bool is_done = false;
};

struct Thread {
  Fiber fiber;
  Cta* cta = nullptr;
  int index = 0;
  const char* role = "";
  bool is_finished = false;
  bool has_waited = false;  // for earlier kernels
  Wait wait;
  int64_t syncs = 0;          // CTA-wide barriers passed, those of the cluster included
  int64_t cluster_syncs = 0;  // cluster-wide ones
  std::vector<uint32_t> dirty;
  std::vector<PendingCopy> open_stores;
  std::deque<std::vector<PendingCopy>> stores;

  int lane() const { return index % kWarp; }
  int warp() const { return index / kWarp; }
};

enum class Collective : uint8_t {
  SyncWarp,
  Uniform,
  LaneXor,
  LaneFrom,
  VoteAny,
  Stmatrix,
  Ldmatrix,
  Mma,
  BarSync,
  BarArrive,
  ClusterSync,
  Registers,
  WgmmaFence,
  Wgmma,
  WgmmaCommit,
  WgmmaWait,
};

struct MatrixGroup {
  std::vector<Product> products;
  bool is_executed = false;
};

struct Warp {
  Cta* cta = nullptr;
  int index = 0;
  size_t clock = 0;  // its place among the warps of the cluster
  uint32_t ready = ~0u;
  uint64_t priority = 0;
  int registers = 0;
  Knowledge knows;

  // The rendezvous that some lanes have reached.
  uint32_t arrived = 0;
  Collective collective = Collective::SyncWarp;
  int line = 0;
  std::array<void*, kWarp> arguments = {};

  bool is_fenced = false;
  MatrixGroup open;
  std::deque<MatrixGroup> groups;
  std::vector<std::unique_ptr<Accumulator>> accumulators;
  int64_t group_steps = 0;  // instructions that its warp group executes together

  int group() const { return index / kWarpsPerGroup; }
};

// What the warps of a group have executed, so that each can be compared with the first.
struct GroupStep {
  Collective kind = Collective::Wgmma;
  int line = 0;
  uint64_t a = 0;
  uint64_t b = 0;
};
struct GroupLog {
  int64_t first = 0;
  std::deque<GroupStep> steps;
};

struct NamedBarrier {
  int expected = 0;
  int arrived = 0;
  uint64_t arrived_warps = 0;
  uint64_t waiting_warps = 0;
  Knowledge arrived_with;
};

struct PhaseBarrier {
  uint32_t address = 0;
  int count = 0;
  int pending = 0;
  int64_t bytes = 0;
  int64_t completed = 0;
  int init_thread = 0;
  int init_line = 0;
  bool is_fenced = false;
  int64_t fence_syncs = 0;
  int64_t fence_cluster_syncs = 0;
  // Of a ring: its address, the slot, and which of the two barriers this is.
  uint32_t ring = 0;
  int slot = -1;
  int slots = 0;
  bool is_full = false;
  std::vector<int> waiters;
  Knowledge arriving;   // of the phase in progress
  Knowledge published;  // of the completed ones
};

struct Cta {
  Cta(Machine& machine, Cluster& cluster, int index, Stacks& stacks);

  Machine& machine;
  Cluster& cluster;
  int index;
  SharedMemory memory;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::array<NamedBarrier, 16> named;
  std::vector<PhaseBarrier> barriers;
  std::vector<int> barrier_at;     // by 8 bytes of shared memory, -1 where none is
  std::vector<PendingCopy> loads;  // to this CTA's memory
  int64_t unread_stores = 0;
  int64_t waiting_groups = 0;  // committed and not executed
  std::vector<GroupLog> logs;
  LastAccess async_reads;  // by copies and products, at the wait for them
  LastAccess ordinary_reads;
  LastAccess word_reads;  // the same by words, for ordinary writes, which may share a granule
  LastAccess word_writes;
  LastAccess word_combines;  // by atomic operations, which need no order among themselves
  LastAccess fenced_writes;
  int free_registers = 0;
  int finished = 0;
  Knowledge at_exit;  // of all its warps together
  // By warp of the cluster: the period of its last arrival from another CTA.
  std::vector<uint32_t> remote_arrivals;

  Warp& warp_of(const Thread& thread) { return warps[static_cast<size_t>(thread.warp())]; }
  bool is_over() const { return finished == static_cast<int>(threads.size()); }
  int rank() const;

  // Scheduling (machine.cc).
  void block(Thread& thread, const Wait& wait);
  void wake(Thread& thread);
  Thread* pick();
  bool do_async();
  void check_exit();
  void check_cluster_exit();

  // Rendezvous of the 32 lanes (collectives.cc). `argument` is valid until the call returns.
  void collect(Thread& thread, Collective kind, void* argument, int line);
  bool complete(Warp& warp);
  void stmatrix(Warp& warp);
  void ldmatrix(Warp& warp);
  bool set_registers(Warp& warp);
  void retry_registers();
  // Compares an instruction with those of the other warps of the group.
  void log_step(Warp& warp, const GroupStep& step);

  // Barriers (barriers.cc).
  bool arrive_named(Warp& warp, int id, int threads, bool is_sync);
  void init_barrier(Thread& thread, uint32_t at, int count, int line);
  void fence_barriers(Thread& thread);
  PhaseBarrier* find_barrier(Thread& thread, uint32_t at, int line);
  void arrive(Thread& thread, PhaseBarrier& barrier, int line);
  // At the barrier at the same address in the CTA of that rank.
  void arrive_remote(Thread& thread, uint32_t at, int rank, int line);
  bool arrive_cluster(Warp& warp);
  // The number under which knowledge keeps one of this CTA's mbarriers.
  size_t phase_index(int barrier) const;
  void complete_phases(PhaseBarrier& barrier);
  void wait_phase(Thread& thread, uint32_t at, int parity, int64_t phases, int line);

  // Ordinary accesses to shared memory (accesses.cc).
  bool check_shared(Thread& thread, uint32_t address, int bytes, int alignment, int line);
  void write_word(Thread& thread, uint32_t address, uint32_t bits, int line);
  // In the CTA of that rank in the cluster.
  void write_remote(Thread& thread, uint32_t address, int rank, uint32_t bits, int line);
  uint32_t read_word(Thread& thread, uint32_t address, int line);
  // Where an element is, to be changed by an atomic operation.
  void* combine(Thread& thread, uint32_t address, int bytes, int line);
  void fence_async(Thread& thread);
  // Passes on the warp's knowledge and begins a new period.
  void publish(Warp& warp, Knowledge* to);
  // Why a warp must not yet read a granule (`what` reads), or an empty string.
  std::string unordered_read(const Warp& warp, uint32_t address, std::string_view what);
  std::string pending_use(uint32_t address);

  // The copy engine (copies.cc).
  // A load to this CTA's memory; the thread may be one of another CTA that multicasts.
  void start_load(Thread& thread, const NamedBox& to, uint32_t bar, int line);
  void start_multicast(Thread& thread, const NamedBox& to, uint32_t bar, unsigned mask, int line);
  void start_store(Thread& thread, const NamedBox& from, int line);
  void wait_stores(Thread& thread, int pending);
  bool make_box(Thread& thread, const NamedBox& of, int line, Box* box);
  void finish_load(size_t which);
  void finish_store(PendingCopy& store);

  // The matrix unit (matrix.cc).
  void issue_product(Warp& warp);
  void commit_group(Warp& warp);
  void wait_groups(Warp& warp);
  void execute(Warp& warp, MatrixGroup& group);
  void retire(Warp& warp, MatrixGroup& group);
};

// CTAs that run together and reach each other's shared memory. Kernels without clusters have one
// CTA in each.
struct Cluster {
  Cluster(Machine& machine, int index, const std::vector<Stacks*>& stacks);

  std::vector<std::unique_ptr<Cta>> ctas;
  int arrived = 0;  // warps at the barrier of the cluster
  Knowledge arrived_with;

  bool is_over() const;
};

struct Machine {
  Machine(const CompiledBody& compiled, const Launch& what, const Options& how);

  const CompiledBody& body;
  const Launch& launch;
  int ctas_per_sm = 1;  // that the kernel was compiled for
  const Options& options;
  const target::Limits& limits;
  base::Random random;
  std::string report;
  Statistics statistics;
  Progress progress;
  Thread* current = nullptr;
  void (*kernel)(const void* params) = nullptr;
  const void* params = nullptr;
  int cluster = 1;  // CTAs of a cluster

  // Chosen anew from time to time: how eagerly pending work is done, how often threads are
  // interrupted, which lanes go first.
  int64_t epoch_left = 0;
  double load_chance = 0;
  double store_chance = 0;
  double product_chance = 0;
  int interrupt_every = 0;
  int interrupt_in = 0;
  int first_lane = 0;

  bool is_failed() const { return !report.empty(); }
  // Records the first violation; a line of 0 is not shown.
  void fail(const Thread& thread, int line, std::string message);
  void fail(std::string message);
  // Counts a call, reports too many calls without progress, and may let another thread run.
  void step(Thread& thread, int line);
  // Does not return if something was reported.
  void leave_if_failed();

  std::string run();
  void run_all();
  void new_epoch();
  // A kernel that begins early has waited for the earlier ones.
  bool check_waited(const Thread& thread, bool is_write, int line);
  bool check_global(const Thread& thread, const void* at, int64_t bytes, bool is_write, int line);
};

// Words for reports (describe.cc).
std::string_view collective_name(Collective kind);
std::string describe_thread(const Thread& thread);
std::string describe_lanes(uint32_t mask);
// A warp by its clock, as one of this CTA or of another one in the cluster.
std::string describe_warp(const Cta& cta, int clock);
std::string describe_barrier(const PhaseBarrier& barrier);
std::string describe_wait(const Thread& thread);
std::string describe_source(const Machine& machine, int line);
// All threads that wait, those with the same reason in one line.
std::string describe_deadlock(const Machine& machine, const std::vector<Cta*>& ctas);

// The machine whose fiber runs on this thread of the host, and what kernels are bound to.
Machine*& running_machine();
const HostTable& host_table();

}  // namespace nautilus::emulator
