// SPDX-License-Identifier: Apache-2.0
// The loops of compiled kernels, found in the machine code itself, and the spilled registers that
// they reload. The assembler reports spills per kernel; whether they cost anything depends on where
// they are: a reload before the tile loop is free, one in the loop that feeds the tensor cores is
// not.
//
// Facts about the sm_90 encoding, read off disassembled kernels: instructions are 16 bytes, the
// opcode is bits 0..11 (matrix instructions: bits 2..8), the guard is bits 12..15 (7: always), a
// branch's second predicate is bits 87..90, its distance in units of 4 bytes from the next
// instruction is bits 34..81 above bits 16..23.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::runtime {

// A natural loop. Counts include loops inside it.
struct MachineLoop {
  uint32_t start = 0;  // address of its header, from the kernel's first instruction
  int depth = 1;       // loops around it, itself included
  int instructions = 0;
  int matrix = 0;        // wgmma
  int bulk_copies = 0;   // TMA loads
  int spill_loads = 0;   // of local memory
  int spill_stores = 0;  // to local memory
  bool has_inner_matrix_loop = false;
};

// Loops of one kernel by address. Empty for a text that is not such code.
std::vector<MachineLoop> machine_loops(std::string_view instructions);

struct KernelLoops {
  std::string name;
  std::vector<MachineLoop> loops;
};

// Of all kernels in a cubin. Empty for something else.
std::vector<KernelLoops> loops_of_cubin(std::string_view cubin);

// Of one kernel of a cubin; of the whole of it, if it has no such kernel.
size_t code_bytes(std::string_view cubin, std::string_view kernel);

// The worst loop among those that feed the tensor cores and hold no other such loop, by the share
// of instructions that touch spilled registers; null if no such loop does.
const MachineLoop* worst_matrix_loop(const std::vector<MachineLoop>& loops);

}  // namespace nautilus::runtime
