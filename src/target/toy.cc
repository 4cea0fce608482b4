// SPDX-License-Identifier: Apache-2.0
// A machine that does not exist, for tests: its kernels are those of sm_90a within other limits, so
// that the emulator runs them. A number that a pass did not read from the target shows up in these
// kernels.
#include "target/target.h"

namespace nautilus::target {
namespace {

Target made_up() {
  Target t = sm_90a();
  t.name = "toy";
  t.architecture = "";
  // Half the shared memory and no clusters.
  t.limits.cta_shared_bytes /= 2;
  t.limits.sm_shared_bytes /= 2;
  t.limits.cluster_ctas = 1;
  t.limits.sm_ctas = 16;
  t.limits.sm_threads = 1536;
  // Operands of 16 bits alone.
  std::erase_if(t.matrix.widths, [](const OperandWidth& w) { return w.bytes != 2; });
  t.board = {.sms = 64, .clock_ghz = 1.0};
  t.memory.section_bytes /= 4;
  // Memory is slow, register work and launches are cheap.
  t.costs.memory_bytes_per_cycle = 600;
  t.costs.launch_cycles = 3000;
  t.costs.next_kernel_cycles = 900;
  t.costs.copy_bytes_per_cycle = 24;
  t.costs.products_per_cycle = 1024;
  t.costs.special_slots = 4;
  t.costs.step_floor = 100;
  // Tiles that fit half the memory, rows that are shared earlier, points that are widened earlier.
  t.tiles.kernels = 3;
  t.tiles.groups = 3;
  t.tiles.most_step = 128;
  t.tiles.raster_rows = 4;
  t.tiles.most_slots = 6;
  t.parts.long_axis = 8;
  t.rows.columns = {512, 2048, 8192};
  t.rows.group_columns = 4096;
  t.rows.groups = 2;
  t.rows.most_columns = 16384;
  t.rows.columns_of_group = 8192;
  t.rows.ahead_bytes /= 2;
  t.points.threads = 64;
  t.points.many = 4096;
  t.points.long_reduction = 512;
  return t;
}

}  // namespace

const Target& toy() {
  static const Target target = made_up();
  return target;
}

}  // namespace nautilus::target
