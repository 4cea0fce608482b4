// SPDX-License-Identifier: Apache-2.0
// What the cost model knows about a machine. The numbers are least-squares values from measured
// kernels. Cycles at the reference clock.
#pragma once

#include <array>
#include <cstdint>

namespace nautilus::schedule {

struct Target {
  const char* name = "sm_90a";
  int64_t sms = 132;
  double clock_ghz = 1.755;
  int64_t shared_bytes = 232448;
  double memory_bytes_per_cycle = 2400;  // of the whole machine
  double launch_cycles = 11000;          // of a kernel, until the first tile and after the last
  double next_kernel_cycles = 4000;      // of one more that begins while another runs; estimated

  // Matrix unit: multiply-adds of 16-bit operands per cycle and multiprocessor, and what power and
  // issue take from it, in loops of products alone and in loops with register work beside them.
  double products_per_cycle = 2048;
  double alone_factor = 1.29;
  std::array<double, 5> mixed_factor = {0, 1.15, 1.162, 1.196, 1.2};  // by the number of groups
  // Of a group and step with register work: until its products start; by the number of groups.
  std::array<double, 5> turn_cycles = {0, 110, 174, 100, 66};
  double shared_bytes_per_cycle = 128;
  double copy_bytes_per_cycle = 59;  // of a multiprocessor, out of the second-level cache
  double cluster_factor = 1.01;      // CTAs that wait for each other
  double unaligned_factor = 2.2;     // rows of no multiple of 128 bytes touch two lines each

  // Register work: issue slots of one warp, and how well 1, 2, 3 and 4 groups fill the slots the
  // others leave. The exponent says how well register work hides behind products.
  double special_slots = 8;  // exponentials, reciprocals, roots
  double extreme_slots = 2;
  double cast_slots = 0.5;
  double load_slots = 24;  // an element that is read from memory where it is used
  // Estimated from the instructions, not timed.
  double take_slots = 1;    // an element of a box that the copy engine brings
  double line_slots = 0.5;  // of a piece of a row, which every row of a thread shares
  double row_slots = 115;   // of a step: votes, barriers, values per row
  // Of a thread, by the number of groups; those beside tiles; and what a step costs for each that
  // is missing (192 x 80 scores with a bias: 14 are, 850 cycles of three groups).
  std::array<double, 5> registers = {0, 240, 240, 160, 112};
  double other_registers = 30;
  double spill_cycles = 20;
  std::array<double, 5> group_factor = {0, 1.25, 1.0, 0.983, 0.877};
  std::array<double, 5> hiding = {0, 1.5, 3.27, 6.2, 6.8};

  // A tile of a loop with register work, beside its steps.
  double tile_cycles = 1200;
  double tile_steps = 0.64;
  double epilogue_cycles = 670;  // for 128 x 128 results
  double start_cycles = 600;     // until the ring of a loop of products is filled
  double step_floor = 190;       // barriers and issue of one step
  double dynamic_cycles = 320;   // fetching the number of a tile
  // Of parts. The last two are fitted to a sweep of decode.
  double part_cycles = 90;       // putting one more part of an axis together
  double exposed_steps = 3;      // of a part: until the first data are there, and after the last
  double last_tile_bytes = 6.7;  // of parts that the last tile puts together in a cycle
};

inline constexpr Target kHopper;

}  // namespace nautilus::schedule
