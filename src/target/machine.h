// SPDX-License-Identifier: Apache-2.0
// The parts of a machine: what threads, the matrix unit, the copy engine and memory are and take.
//
// A thread, a warp, a CTA (threads that share memory and wait for each other) and a multiprocessor
// are meant as CUDA means them; a group is the threads that give the matrix unit one instruction.
// Registers have 32 bits. Cycles are those of the reference clock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace nautilus::target {

// Groups that share a tile: no target has numbers for more.
inline constexpr int kMostGroups = 4;
// A number for 1, 2, 3 and 4 groups; index 0 is not used.
template <class T>
using ByGroups = std::array<T, kMostGroups + 1>;

// What a kernel may use at most: more than this cannot be launched. Of one thread, CTA or
// multiprocessor, as the name says.
struct Limits {
  int warp_threads;
  int group_threads;  // of the threads that give the matrix unit one instruction
  int cta_threads;
  int sm_threads;  // of all its CTAs
  int sm_ctas;
  int role_groups;  // groups of a role
  int sm_registers;
  int thread_registers;      // that an instruction can name
  int register_step;         // registers are given out in multiples of this
  int launch_registers;      // of a thread, at most, when a CTA starts
  int least_role_registers;  // of a thread, where roles pass registers to each other
  int most_role_registers;   // the same at most
  int cta_shared_bytes;      // of shared memory
  int sm_shared_bytes;       // of all its CTAs, with what is kept
  int kept_shared_bytes;     // of shared memory, for each CTA by the hardware
  int named_barriers;        // number 0 is the CTA's own
  int cluster_ctas;          // CTAs of a cluster; 1: there are no clusters

  // Bytes that each of `resident` CTAs of a multiprocessor can have.
  int shared_bytes(int resident = 1) const;
  // Registers that each of `threads` threads of `resident` CTAs starts with.
  int registers(int threads, int resident) const;
};

// Sums of products of floats are f32, those of integers are i32 and wrap around.
enum class OperandKind : uint8_t { Float, Integer };

// Operands of the matrix unit with elements of one kind and size.
struct OperandWidth {
  OperandKind kind;
  int bytes;        // of an element
  int column_step;  // columns are a multiple of this
  int depth;        // elements that one instruction sums over
  double speed;     // of its products, compared with those of 16-bit operands
  // Whether operands in shared memory may be stored along either axis; otherwise along the depth.
  bool is_any_major;
  // Whether the unit's sums are too coarse for long ones: sums of few products are added in
  // registers, at most so many apart. 0: they are not.
  int apart_depth;
};

// Matrix unit: the shape of one instruction of a group, in elements of 16-bit operands.
struct Matrix {
  int rows;
  int column_step;  // columns are a multiple of this
  int most_columns;
  int depth;      // that one instruction sums over
  int warp_rows;  // of those rows, the ones that a warp holds and can branch for alone
  // Of a thread when the CTA starts, in addition to the sums of one instruction: with fewer
  // registers in total the assembler refuses the instruction, even if its role gets more later.
  int spare_registers;
  std::vector<OperandWidth> widths;  // of elements that it takes

  // Null if the unit has no operands of elements of that kind with so many bytes.
  const OperandWidth* width(OperandKind kind, int bytes) const;
};

// Copy engine: boxes of tensors to and from shared memory.
struct Copies {
  int box_axes;        // of a box, at most
  int box_extent;      // of each axis, in elements
  int box_step;        // the largest step between rows of a box
  int begin_bytes;     // a box begins at a multiple of this
  int tile_alignment;  // bytes; the period of the widest swizzle
  int panel_bytes;     // contiguous bytes of a row of a tile; the width of the widest swizzle
  int64_t latency;     // cycles from the release of a slot to its data, with some reserve

  // Columns of a panel of elements of so many bytes.
  int panel_columns(int bytes = 2) const { return panel_bytes / bytes; }
};

// What differs between boards of one architecture, at its usual values: `machine sms` in a plan is
// the number of the device that runs it.
struct Board {
  int64_t sms;       // multiprocessors
  double clock_ghz;  // the reference clock
};

struct Memory {
  int vector_bytes;             // of the widest load of a thread
  int line_bytes;               // of a cache line
  int promote_bytes;            // that a miss of a box fetches, unless the map says otherwise
  std::vector<int> promotions;  // all sizes that it may fetch
  int64_t section_bytes;        // of operands that tiles in flight together may share in the cache
};

}  // namespace nautilus::target
