// SPDX-License-Identifier: Apache-2.0
//
// The operands of the matrix unit by dtype: how 16 bytes of them are read, and how exactly the unit
// adds their products.
#pragma once

#include <cstdint>

#include "emulator/host_table.h"

namespace nautilus::emulator {

int element_bytes(Operand operand);
// Sums of products of these are integers.
bool is_integer(Operand operand);

// Elements along k in one instruction.
inline constexpr int kMaxDepth = 32;
inline int depth_of(Operand operand) { return kMaxDepth / element_bytes(operand); }

// The exponent of the smallest normal number of floats.
int least_exponent(Operand operand);

// What is kept of a sum (fused_sum.h): of its terms down to 2^(E - term_bits), and that many
// fraction bits of the result. As found by MMA-Sim (arXiv 2511.10909) for Hopper.
struct SumRule {
  int term_bits;
  int result_bits;
};
SumRule sum_rule(Operand operand);  // of floats

// Reads a piece of 16 bytes; `to` gets its numbers, `stride` apart.
void read_piece(const unsigned char* from, Operand operand, float* to, int stride);

}  // namespace nautilus::emulator
