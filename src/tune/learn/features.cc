// SPDX-License-Identifier: Apache-2.0
#include "tune/learn/features.h"

#include <algorithm>
#include <cmath>

#include "estimate/registers.h"
#include "matile/point_layout.h"
#include "matile/resources.h"
#include "tune/learn/kernel_work.h"

namespace nautilus::tune {
namespace {

double logarithm(double amount) { return std::log2(1 + std::max(amount, 0.0)); }

// The resources of a kernel on a multiprocessor.
struct Occupancy {
  double threads = 0;
  double registers = 0;  // of a thread that computes
  double shared = 0;     // bytes
  double resident = 1;   // CTAs
  double groups = 1;
  double slots = 0;  // of the deepest ring
  double slot_bytes = 0;
  double cluster = 1;
};

Occupancy occupancy_of(const matile::Kernel& kernel, const target::Target& target) {
  const matile::Resources r = matile::resources_of(kernel, target);
  Occupancy out;
  if (r.threads == 0) {  // points: registers are the compiler's, as many CTAs as threads allow
    const int64_t threads = matile::point_layout(kernel).threads.value_or(target.points.threads);
    out.threads = static_cast<double>(threads);
    out.resident = std::max(1.0, target.limits.sm_threads / out.threads);
    return out;
  }
  out.threads = r.threads;
  out.shared = r.shared_bytes;
  out.cluster = r.cluster;
  int64_t registers = r.launch_registers();
  for (const matile::RoleInfo& role : r.roles) {
    if (!role.is_compute()) continue;
    out.groups = std::max<double>(out.groups, role.groups());
    registers = std::max(registers, role.op->regs.value_or(0));
  }
  out.registers = static_cast<double>(registers);
  for (const matile::RingInfo& ring : r.rings) {
    out.slots = std::max<double>(out.slots, ring.slots());
    out.slot_bytes = std::max<double>(out.slot_bytes, ring.slot_bytes);
  }
  const int64_t by_threads = estimate::ctas_that_fit(
      std::max(r.threads, target.limits.warp_threads), r.launch_registers(), target.limits);
  const int64_t by_shared =
      r.shared_bytes > 0
          ? target.limits.sm_shared_bytes / (r.shared_bytes + target.limits.kept_shared_bytes)
          : by_threads;
  out.resident = static_cast<double>(std::max<int64_t>(1, std::min(by_threads, by_shared)));
  return out;
}

// All sizes of the plan at the sizes of a call.
void add_sizes(const ir::Program& kernels, int64_t multiprocessors, ir::Environment& env) {
  for (const ir::Op& op : kernels.body) {
    if (const auto* m = op.get<ir::Machine>())
      env.sizes.insert_or_assign(std::string(m->name.str()), multiprocessors);
    const auto* let = op.get<matile::Let>();
    if (!let) continue;
    const expr::Value value = ir::evaluate(let->value, env);
    if (let->value.dtype() == expr::DType::I64)
      env.sizes.insert_or_assign(std::string(let->name.str()), value.i);
    else
      env.scalars.insert_or_assign(std::string(let->name.str()), value);
  }
}

// Of the machine, for each of its parts.
struct Cycles {
  double matrix = 0;
  double copies = 0;
  double memory = 0;
  double registers = 0;

  double longest() const { return std::max({matrix, copies, memory, registers}); }
};

Cycles cycles_of(const KernelWork& w, double sms, const target::Target& target) {
  const target::Costs& costs = target.costs;
  Cycles out;
  out.matrix = w.products / (costs.products_per_cycle * sms);
  out.copies = w.copied / (costs.copy_bytes_per_cycle * sms);
  out.memory = (w.loaded + w.stored) / costs.memory_bytes_per_cycle;
  out.registers =
      (w.operations + costs.special_slots * w.special) / (target.limits.warp_threads * sms);
  return out;
}

void add(const Cycles& cycles, Cycles& sum) {
  sum.matrix += cycles.matrix;
  sum.copies += cycles.copies;
  sum.memory += cycles.memory;
  sum.registers += cycles.registers;
}

void add(const KernelWork& w, KernelWork& sum) {
  sum.products += w.products;
  sum.copied += w.copied;
  sum.loaded += w.loaded;
  sum.stored += w.stored;
  sum.operations += w.operations;
  sum.special += w.special;
  sum.exchanged += w.exchanged;
  sum.waits += w.waits;
  sum.turns += w.turns;
  sum.tiles += w.tiles;
}

constexpr size_t kFeatures = 25;

}  // namespace

const std::vector<std::string_view>& feature_names() {
  static const std::vector<std::string_view> kNames = {"floor: matrix unit",
                                                       "floor: copies",
                                                       "floor: memory",
                                                       "floor: registers",
                                                       "products",
                                                       "copied",
                                                       "loaded",
                                                       "stored",
                                                       "operations",
                                                       "special",
                                                       "exchanged",
                                                       "waits",
                                                       "turns",
                                                       "tiles",
                                                       "launches",
                                                       "CTAs",
                                                       "waves",
                                                       "last wave",
                                                       "threads",
                                                       "registers",
                                                       "shared memory",
                                                       "resident",
                                                       "groups",
                                                       "slots",
                                                       "cluster"};
  return kNames;
}

Features features_of(const ir::Program& kernels, const std::vector<driver::PlannedLaunch>& launches,
                     ir::Environment env, int64_t multiprocessors, const target::Target& target) {
  add_sizes(kernels, multiprocessors, env);
  const auto sms = static_cast<double>(multiprocessors);
  KernelWork sum;
  Cycles all;
  double waves = 0, last_wave = 0, ctas = 0, longest = -1;
  Occupancy main;  // of the kernel that takes longest
  for (const driver::PlannedLaunch& launch : launches) {
    for (const ir::Op& op : kernels.body) {
      const auto* kernel = op.get<matile::Kernel>();
      if (!kernel || kernel->name.str() != launch.kernel) continue;
      const KernelWork w = work_of(*kernel, env, launch.grid);
      const Occupancy o = occupancy_of(*kernel, target);
      const Cycles cycles = cycles_of(w, sms, target);
      // A machine that is partly empty works with what is full.
      const double rounds = w.tiles / (sms * o.resident);
      if (cycles.longest() > longest) {
        longest = cycles.longest();
        main = o;
        waves = rounds;
        last_wave = std::ceil(rounds) / std::max(rounds, 1e-9);
        ctas = static_cast<double>(launch.grid);
      }
      add(cycles, all);
      add(w, sum);
    }
  }
  Features out = {logarithm(all.matrix),
                  logarithm(all.copies),
                  logarithm(all.memory),
                  logarithm(all.registers),
                  logarithm(sum.products),
                  logarithm(sum.copied),
                  logarithm(sum.loaded),
                  logarithm(sum.stored),
                  logarithm(sum.operations),
                  logarithm(sum.special),
                  logarithm(sum.exchanged),
                  logarithm(sum.waits),
                  logarithm(sum.turns),
                  logarithm(sum.tiles),
                  static_cast<double>(launches.size()),
                  logarithm(ctas),
                  logarithm(waves),
                  std::log2(std::max(last_wave, 1.0)),
                  main.threads,
                  main.registers,
                  logarithm(main.shared),
                  main.resident,
                  main.groups,
                  main.slots,
                  main.cluster};
  NAUT_CHECK(out.size() == kFeatures && feature_names().size() == kFeatures, "{} features",
             out.size());
  return out;
}

}  // namespace nautilus::tune
