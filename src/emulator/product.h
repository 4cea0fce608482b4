// SPDX-License-Identifier: Apache-2.0
//
// One product of the matrix unit, one warp's 16 rows of it: where its operands are and into which
// registers its sums go. The four warps of a group share B but are otherwise independent, as on the
// device: nothing here makes one wait for another.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/fused_sum.h"
#include "emulator/shared_memory.h"

namespace nautilus::emulator {

// Bytes of a register; kernels hold a float or an int in it.
inline constexpr int kRegisterBytes = 4;

// An accumulator between its first issue and the wait that names it. Meanwhile the registers of the
// kernel hold a pattern that is a NaN, and `values` or `integers` what the matrix unit has.
struct Accumulator {
  std::array<char*, 32> registers = {};
  int n = 0;
  bool has_integers = false;
  std::vector<float> values;      // kRows x n
  std::vector<int32_t> integers;  // the same
  int pending = 0;                // products not yet retired

  int register_count() const { return n / 2; }
};

struct Product {
  Accumulator* accumulator = nullptr;
  int n = 0;
  Operand a_operand = Operand::BF16;
  Operand b_operand = Operand::BF16;
  bool is_init = false;
  bool is_a_transposed = false;
  bool is_b_transposed = false;
  bool is_a_in_registers = false;
  std::array<const uint32_t*, 32> a_registers = {};
  std::array<std::array<uint32_t, 4>, 32> a_values = {};
  uint64_t a = 0;
  uint64_t b = 0;
  std::vector<uint32_t> granules;  // addresses it reads
  int line = 0;
};

// Why a descriptor cannot be used, or an empty string.
std::string descriptor_flaw(uint64_t bits);

// The addresses of the 16-byte pieces that a warp (0..3) reads of A and of B. Those of A are
// ordered so that piece i begins at element (row = i / 2, k = depth / 2 * (i % 2)) or, transposed,
// at (row = 8 * (i % 2), k = i / 2); those of B at (k = depth / 2 * (i % 2), n = i / 2) or,
// transposed, at (k = i / (n / 8), n = 8 * (i % (n / 8))). Only 16-bit operands are ever
// transposed.
std::vector<uint32_t> a_pieces(const Product& product, int warp);
std::vector<uint32_t> b_pieces(const Product& product);

// Adds the product to the accumulator's values. All addresses must be inside the memory.
void multiply(const Product& product, SharedMemory& memory);

// A lane's part of an m16n8k16 product, d += a . b.
struct SmallProduct {
  float* d;
  const uint32_t* a;
  const uint32_t* b;
  bool is_f16;
};
void multiply_small(const std::array<SmallProduct, 32>& lanes);

// Between the registers of 32 lanes and kRows x n values (layout::acc).
void gather(Accumulator* accumulator);
void scatter(Accumulator& accumulator);

// The pattern in the registers of an accumulator that is in flight.
inline constexpr uint32_t kInFlight = 0x7fc1dead;
void poison(const Accumulator& accumulator);
bool is_poisoned(const Accumulator& accumulator);

}  // namespace nautilus::emulator
