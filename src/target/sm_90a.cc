// SPDX-License-Identifier: Apache-2.0
// Hopper: H100 and H200. Limits are documented ones; costs and thresholds were fitted to kernels
// measured on an H200, where the comment does not say otherwise.
#include "target/target.h"

namespace nautilus::target {

const Target& sm_90a() {
  static const Target target = {
      .name = "sm_90a",
      .architecture = "sm_90a",
      .limits =
          {
              .warp_threads = 32,
              .group_threads = 128,
              .cta_threads = 1024,
              .sm_threads = 2048,
              .sm_ctas = 32,
              .role_groups = 7,
              .sm_registers = 65536,
              .thread_registers = 255,
              .register_step = 8,
              .launch_registers = 248,
              .least_role_registers = 24,
              .most_role_registers = 256,
              .cta_shared_bytes = 232448,
              .sm_shared_bytes = 233472,
              .kept_shared_bytes = 1024,
              .named_barriers = 16,
              .cluster_ctas = 16,  // more than 8 need permission of the driver
          },
      .matrix =
          {
              .rows = 64,
              .column_step = 8,
              .most_columns = 256,
              .depth = 16,
              .warp_rows = 16,
              // The assembler asks for 130, 134, 138 and 154 with 208, 216, 224 and 256 columns.
              .spare_registers = 26,
              .widths =
                  {
                      // 13 bits of the largest term: sums of 128 have a relative error of 1.3e-4.
                      {.kind = OperandKind::Float,
                       .bytes = 1,
                       .column_step = 8,
                       .depth = 32,
                       .speed = 2,
                       .is_any_major = false,
                       .apart_depth = 128},
                      {.kind = OperandKind::Float,
                       .bytes = 2,
                       .column_step = 8,
                       .depth = 16,
                       .speed = 1,
                       .is_any_major = true,
                       .apart_depth = 0},
                      {.kind = OperandKind::Float,
                       .bytes = 4,
                       .column_step = 8,
                       .depth = 8,
                       .speed = 0.5,
                       .is_any_major = false,
                       .apart_depth = 0},
                      // 8 and 24 columns are there, too, but not 40.
                      {.kind = OperandKind::Integer,
                       .bytes = 1,
                       .column_step = 16,
                       .depth = 32,
                       .speed = 2,
                       .is_any_major = false,
                       .apart_depth = 0},
                  },
          },
      .copies =
          {
              .box_axes = 5,
              .box_extent = 256,
              .box_step = 8,
              .begin_bytes = 16,
              .tile_alignment = 1024,
              .panel_bytes = 128,
              .latency = 2048,
          },
      .board = {.sms = 132, .clock_ghz = 1.755},
      .memory =
          {
              .vector_bytes = 16,
              .line_bytes = 128,
              .promote_bytes = 256,
              .promotions = {0, 64, 128, 256},
              .section_bytes = int64_t{32} << 20,
          },
      .costs =
          {
              .memory_bytes_per_cycle = 2400,
              .launch_cycles = 11000,
              .next_kernel_cycles = 4000,  // estimated
              .products_per_cycle = 2048,
              .alone_factor = 1.29,
              .mixed_factor = {0, 1.15, 1.162, 1.196, 1.2},
              .turn_cycles = {0, 110, 174, 100, 66},
              .shared_bytes_per_cycle = 128,
              .copy_bytes_per_cycle = 59,
              .cluster_factor = 1.01,
              .unaligned_factor = 2.2,
              .special_slots = 8,
              // Counted in the instructions of the device compiler, as the next one.
              .functions = {.sine = 3,
                            .near_one = 3,
                            .power = 8,
                            .error_function = 3,
                            .hyperbolic_tangent = 2,
                            .sigmoid = 2},
              .select_slots = 2,
              .extreme_slots = 2,
              .speculated_slots = 0.25,
              .cast_slots = 0.5,
              .load_slots = 24,
              .take_slots = 1,  // estimated from the instructions, as the next one
              .line_slots = 0.5,
              .row_slots = 115,
              .code =  // counted in kernels
              {
                  .sine = 90,
                  .power = 75,
                  .logarithm = 22,
                  .error_function = 24,
                  .hyperbolic_tangent = 12,
                  .sigmoid = 4,
                  .coarse_logarithm = 2,
                  .coarse_error_function = 10,
                  .coarse_hyperbolic_tangent = 1,
              },
              .other_registers = 30,
              .spill_cycles = 20,  // 192 x 80 scores with a bias: 14 are missing, 850 cycles
              .crowded_factor = 1.02,
              .group_factor = {0, 1.25, 1.0, 0.983, 0.877},
              .hiding = {0, 1.5, 3.27, 6.2, 6.8},
              .tile_cycles = 1200,
              .tile_steps = 0.64,
              .result_cycles = 670.0 / (128 * 128),
              .start_cycles = 600,
              .step_floor = 190,
              .dynamic_cycles = 320,
              .live_one_of = 2,  // a guess
              .part_cycles = 90,
              .exposed_steps = 3,  // fitted to a sweep of decode, as the next one
              .last_tile_bytes = 6.7,
          },
      .tiles =
          {
              .groups = 4,
              .usual_groups = 3,
              .product_groups = 2,
              .step = 64,
              .deep_step = 32,
              .tap_steps = {32, 16},  // 64 bytes, 32 bytes: the other swizzles of rows
              .least_filled = 4,      // not measured
              // 32 rows of weights of 64 to 117 MB: 48.4 to 44.4, 18.5 to 17.4, 42.0 to 42.0,
              // 45.3 to 41.1 us with the rows as columns; 64 rows gain nothing.
              .least_filled_alone = 2,
              .few_columns = {32, 16, 8},
              .most_step = 192,
              .usual_steps = {128, 80, 64},
              .columns = {256, 192, 128, 64},
              .whole_rows = {128, 192},
              .whole_columns = {128, 192},
              .cluster_extent = 128,
              .stage_columns = 128,
              .most_registers = 240,
              // Checked: fitted to kernels that the assembler takes without serialising (decision
              // 0006).
              .spare = {.checked = 24, .tried = 32, .mixed = 48, .taken = 40},
              .crowded_registers = 180,
              .barrier_bytes = 1024,
              .whole_extent = 256,
              .whole_depth = 576,
              .kernels = 5,
              .long_kernels = 2,
              .worth_on_average = 0.012,
              .worth_somewhere = 0.06,
              .long_code = 2500,
              .most_slots = 12,
              .slots_alone = 4,
              .product_slots = 3,
              .small_slots = 4,
              .resident_slots = 4,  // each waits for memory, not for products
              .most_stages = 4,
              .small_slot_bytes = 2048,
              .least_loader_registers = 24,
              .busy_loader_registers = 40,
              .raster_rows = 8,
              .most_raster_rows = 64,
              .taken_bytes = 512,  // 64 registers
              .hoisted_columns = 64,
              .fold_chains = 4,
              .most_chains = 16,
              .chained_terms = 4,  // not measured
              .many_positions = 8,
              // Beside more registers in tiles the repeated product spills (D = 64, 192 rows,
              // steps of 128: 0.80, 8 % slower; steps of 112 or 80 at D = 128: 0.73, 0.775).
              .speculating_groups = 2,
              .speculating_share = 0.78,
              .speculating_depth = 352,
              .reference_lag = 8,  // not measured
          },
      .parts =
          {
              .long_axis = 16,
              .few_states = 128,
              .filled = 4,
              .filled_of = 5,
              .rounds = 4,
              .worth_a_round = 64,
              .worth_other = 0.95,
              .worth_smaller = 0.99,
              .least_steps = 8,
              .points_of_last = 512,
              .loads_of_last = 64,
              .parts_of_last = 32,
          },
      .rows =
          {
              .threads = 128,
              // Three CTAs of them fit, each with the loads of a row of 64 KiB in flight; a
              // reduction of what is loaded early leaves room for five.
              .registers = 128,
              .early_registers = 96,
              // 8192 columns of 16 bits in a kernel for 16384: one group 0.0756 and 0.0861 ms, four
              // 0.0772 and 0.0977, rmsnorm and softmax of 8192 rows.
              .groups = 4,
              .group_columns = 8192,
              .pair_registers = 64,
              .alone_registers = 128,
              .spare_registers = 24,
              .resident_least = 40,
              .walking_least = 72,
              .columns = {1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288},
              // Lengths not measured against others. The longest: 4 CTAs with 36 elements of each
              // thread, two of which share a multiprocessor.
              .shifted_columns = {1024, 5120, 73728},
              // Not measured. Longer rows give each thread of a CTA its two vectors, or one of f32.
              .short_columns = {64, 256},
              .lane_vectors = 2,  // 32 bytes in flight of each of 2048 threads; not measured
              .lane_elements = 4,
              .most_columns = 65536,
              .ctas = {2, 4, 8, 16},
              // Softmax of 65536 to 393216 columns of 32 bits, with 16384 columns of a CTA and with
              // 24576 to 32768; two CTAs of 16384 were not measured.
              .pair_shares = {0.83, 0.83, 0.78, 0.68},
              .alone_shares = {0.8, 0.72, 0.69, 0.55},
              .walk_share = 0.96,  // 393216 columns, three readings and a writing
              // A kernel that only reads rows has more of them in flight in small CTAs: cross
              // entropy of 16384 columns 0.081 ms by one group, 0.099 by four.
              .columns_of_group = 16384,
              .positions_of_group = 4096,
              .least_columns = 64,
              .least_vector = 4,  // 16 bytes of 32-bit elements
              .most_vector = 8,   // 16 bytes of 16-bit elements
              .turn_elements = 8,
              .walked_rows = 4,
              .most_walked_rows = 8,  // not measured
              .ahead_bytes = int64_t{64} << 10,
              .ahead_row = int64_t{16} << 10,
              .ahead_row_of_groups = int64_t{64} << 10,
              .other_registers = 16,
              .other_per_tile = 16,
              .late_pieces = 64,
              // Not measured: rows that are held have the same lengths, and 4 CTAs of 128 threads
              // with 4096 numbers each have 64 KiB in flight.
              .pieces = {4096, 2048, 1024},
              .resident_pieces = 4,
          },
      .points =
          {
              .threads = 128,
              .each = 4,
              // Faster at 262144 points; between 32768, where decode has its own forms, and that
              // not measured.
              .many = 131072,
              .part_lanes = 8,
              .many_parts = 16,  // one thread has the loads of 8 in flight
              .few = 32 * 1024,  // with 8 lanes each, as many as the machine holds at once
              .line = 8,         // 16 bytes of the narrowest elements that have lines
              .transposed_points = 32,
              .lines_across = 8,       // write 128 bytes, and 4 threads of a warp read 64
              .worth_narrower = 1.05,  // not measured
              // 4x4 pixels 9.4 to 6.0 ms, 5x9 taps of 32 channels as before, 11x11 of 3 channels 18
              // to 31 ms.
              .unrolled = 64,
              // An argmax along 1000 elements of 65536 points: 0.137 ms with 4 of 2 bytes.
              .loads = 16,
              .parts_turns = 8,
              .worth_turns = 4,
              .most_unrolled = 64,
              // 4x4 pixels, 102 registers: 512 threads, 3.5 ms; 1.7 if loads were what it waits
              // for.
              .window_threads = 896,  // 72 registers
              .patch_side = 16,
              .patch_points = 128,
              .patch_usual = 64,
              .patch_turns = 1152,  // with loads and places about 30 KB of instructions
              // 168 registers, no spills. With 128: 3 x 3 x 3 taps 1.31 to 1.46 ms, 11 x 11 with a
              // step 2.6 to 4.1; 3 x 3 x 1 taps 1.78 to 1.66.
              .patch_threads = 384,
              .held_registers = 128,  // not measured: half of a thread's
              .walk_each = 32,
              .walk_vectors = 4,    // 64 bytes of a thread in flight, while it scans as many
              .walk_threads = 256,  // of long rows; 32 to 1024 are within 3 %
              .walk_rounds = 2,     // not measured
              // 154 MB in 0.364 ms with 4 bytes, 0.091 with 16: CTAs begin too slowly.
              .first_bytes = 16,
              .first_threads = 512,
              .sort_each = 16,
              .sort_usual = 8,
              .sort_row = 8192,  // 64 kB of keys, 128 of elements of 64 bits
              .few_places = 1024,
              .merge_each = 4,  // 64 x 131072: 1.74 ms; 1 to 8 are 2.08, 1.86, 1.98
              .merge_runs = 4,  // 57 million elements: a kernel of pairs takes as long as 2.5
              .private_bytes = 12288,  // as many CTAs share a multiprocessor as without
              .walk_resident = 768,    // 80 registers: with 64 some spill
              .column_piece = 64,      // all of it in registers
              .column_nodes = 400,     // not measured
              .column_pieces = 32,     // not measured
              .parts_of_one = 8192,
              .parts_of_many = 64,
              .long_reduction = 1024,
              .few_results = 65536,
          },
      // Estimated; what the choice by them loses is measured (docs/targets.md).
      .nests =
          {
              .small_extent = 64,
              .usual_extent = 1024,
              .large_extent = 65536,
              .strided_lines = 16,
              .same_lines = 0.25,
              .scatter_reads = 2,     // 67108864 terms at random places 0.97 ms
              .meeting_cycles = 100,  // 262144 terms at each of 256 places 17 ms
              .cache_bytes = 40,
              .operation_slots = 1,
              .function_operations = 8,
              .thread_cycles = 1500,
              .turn_cycles = 150,
              .row_cycles = 1500,
              .row_turn_cycles = 800,
              .reduction_cycles = 250,
              .lane_operations = 30,  // of the text of a kernel; not measured
              .resident_rows = 12,
              .sort_own = 4,
              .sort_lanes = 14,
              .sort_shared = 30,
              .sort_step_cycles = 60,
              .search_step = 15,         // the machine code has about 30; not fitted
              .search_step_cycles = 60,  // not measured
              // Convolutions of 3 to 48 channels take 1.6 to 1.75 times their instructions.
              .patch_share = 0.6,
              .place_slots = 2,
              .single_share = 0.9,
              .empty_tiles = 0.13,
              .worth_without_tiles = 0.6,
          },
      .algebra =
          {
              // Measured over predicted, of the times of limbs and of patches of seven
              // convolutions: 0.93 to 1.96, 1.35 in the middle.
              .worth_limbs = 0.8,
              // Loops with running moments take 1.2 to 1.8 times what is predicted.
              .worth_apart = 0.8,
              .unrolled_points = 4,
              .short_row = 128,
              .tile_elements = 64,
              // Three limbs written and read at 4 TB/s, compared with 64 rows of six products at
              // 650 TFLOP/s.
              .copied_steps = 2.5,
              // Heads of 64 numbers, 8192 steps, chunks of 64 and of 128: linear attention 0.70 and
              // 0.62 ms, retention 1.40 and 0.91; with decays of data 1.27 and 1.59.
              .chunk_steps = 64,
              .long_chunk = 128,
              .most_chunk = 256,
              .piece_columns = 128,
              .rank_piece = 256,  // of a warp
              .rank_step = 16,    // not measured, as the next
              .rank_row = 2048,
              .most_ranks = 256,
          },
      .cliffs =
          {
              .intermediate_bytes = 50e6,  // of the second-level cache
              .few_threads = 132 * 256,    // an eighth of those that fit
              .thread_bytes = 16384,
              .filled_tiles = 0.1,
              .code_bytes = 200 * 1000,
          },
  };
  return target;
}

}  // namespace nautilus::target
