// SPDX-License-Identifier: Apache-2.0
#include "emulator/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/half.h"
#include "layout/descriptor.h"
#include "layout/fragments.h"

namespace nautilus::emulator {
namespace {

constexpr int kHalfDepth = 16;  // of a product of 16-bit operands

struct Places {
  // Register r of a lane holds element place[lane][r] of a 16-row matrix: row * 256 + column of the
  // accumulator, row * 16 + column of A (16 bits).
  std::array<std::array<uint16_t, kMaxN / 2>, 32> accumulator;
  std::array<std::array<uint16_t, 8>, 32> a;
};

// Both layouts put the first columns into the first registers, so the widest serves all.
const Places& places() {
  static const Places table = [] {
    Places out;
    const layout::Layout acc = layout::acc(kMaxN);
    const layout::Layout a = layout::afrag(kHalfDepth);
    for (int lane = 0; lane < 32; ++lane) {
      const auto l = static_cast<size_t>(lane);
      for (size_t r = 0; r < kMaxN / 2; ++r) {
        const std::vector<int> at = acc.coordinates_of({0, 0, lane, static_cast<int>(r)});
        out.accumulator[l][r] = static_cast<uint16_t>(at[0] * kMaxN + at[1]);
      }
      for (size_t r = 0; r < 8; ++r) {
        const std::vector<int> at = a.coordinates_of({0, 0, lane, static_cast<int>(r)});
        out.a[l][r] = static_cast<uint16_t>(at[0] * kHalfDepth + at[1]);
      }
    }
    return out;
  }();
  return table;
}

// One at a time is multiplied, and numbers of 256 columns are too much for a fiber's stack.
Factors& factors() {
  static thread_local Factors out;
  return out;
}

void read_a_registers(const Product& product, float* a) {
  for (size_t lane = 0; lane < 32; ++lane) {
    for (size_t r = 0; r < 8; ++r) {
      const uint32_t pair = product.a_values[lane][r / 2];
      const auto bits = static_cast<uint16_t>(r % 2 == 0 ? pair & 0xffffu : pair >> 16);
      const bool is_f16 = product.a_operand == Operand::F16;
      a[places().a[lane][r]] = is_f16 ? f16_value(bits) : bf16_value(bits);
    }
  }
}

void clear(Accumulator& accumulator) {
  std::fill(accumulator.values.begin(), accumulator.values.end(), 0.f);
  std::fill(accumulator.integers.begin(), accumulator.integers.end(), 0);
}

// Calls `move(register, value)` for every register and the value of the matrix unit that belongs to
// it, as bytes.
template <class Move>
void for_each_register(const Accumulator& accumulator, char* values, Move move) {
  const int n = accumulator.n;
  for (size_t lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < n / 2; ++r) {
      const int place = places().accumulator[lane][static_cast<size_t>(r)];
      move(accumulator.registers[lane] + r * kRegisterBytes,
           values + (place / kMaxN * n + place % kMaxN) * kRegisterBytes);
    }
  }
}

char* value_bytes(Accumulator& accumulator) {
  return accumulator.has_integers ? reinterpret_cast<char*>(accumulator.integers.data())
                                  : reinterpret_cast<char*>(accumulator.values.data());
}

}  // namespace

std::string descriptor_flaw(uint64_t bits) {
  constexpr uint64_t kFields = 0xC00E'3FFF'3FFF'3FFFULL;
  if ((bits & ~kFields) != 0) {
    return fmt::format("matrix descriptor {:#018x} has bits set outside its fields", bits);
  }
  const layout::MatrixDescriptor descriptor = layout::decode(bits);
  if (descriptor.base_offset != 0) {
    return fmt::format("matrix descriptor {:#018x} has base offset {}, only 0 is modelled", bits,
                       descriptor.base_offset);
  }
  const auto atom = static_cast<uint32_t>(layout::atom_bytes(descriptor.swizzle));
  const auto span = static_cast<uint32_t>(layout::span_bytes(descriptor.swizzle));
  if (descriptor.swizzle != layout::Swizzle::None && descriptor.start % atom >= span) {
    return fmt::format(
        "matrix operand at smem+{} begins inside a swizzle atom: with base offset 0 the first row "
        "must be a multiple of {} bytes",
        static_cast<int64_t>(descriptor.start) - SharedMemory::kBase, atom);
  }
  return "";
}

std::vector<uint32_t> a_pieces(const Product& product, int warp) {
  const layout::MatrixDescriptor fields = layout::decode(product.a);
  const int depth = depth_of(product.a_operand);
  const int bytes = element_bytes(product.a_operand);
  std::vector<uint32_t> out;
  out.reserve(2 * kRows);
  const auto add = [&](layout::Major major, int row, int k) {
    out.push_back(layout::operand_address(fields, major, warp * kRows + row, k, bytes));
  };
  for (int k = 0; product.is_a_transposed && k < depth; ++k) {
    for (int row = 0; row < kRows; row += 8) add(layout::Major::MN, row, k);
  }
  for (int row = 0; !product.is_a_transposed && row < kRows; ++row) {
    for (int k = 0; k < depth; k += depth / 2) add(layout::Major::K, row, k);
  }
  return out;
}

std::vector<uint32_t> b_pieces(const Product& product) {
  const layout::MatrixDescriptor fields = layout::decode(product.b);
  const int depth = depth_of(product.b_operand);
  const int bytes = element_bytes(product.b_operand);
  std::vector<uint32_t> out;
  out.reserve(static_cast<size_t>(2 * product.n));
  const auto add = [&](layout::Major major, int column, int k) {
    out.push_back(layout::operand_address(fields, major, column, k, bytes));
  };
  for (int k = 0; product.is_b_transposed && k < depth; ++k) {
    for (int column = 0; column < product.n; column += 8) add(layout::Major::MN, column, k);
  }
  for (int column = 0; !product.is_b_transposed && column < product.n; ++column) {
    for (int k = 0; k < depth; k += depth / 2) add(layout::Major::K, column, k);
  }
  return out;
}

void multiply(const Product& product, SharedMemory& memory) {
  Factors& f = factors();
  f.a_operand = product.a_operand;
  f.b_operand = product.b_operand;
  f.n = product.n;
  const int n = product.n;
  const int depth = f.depth();
  size_t piece = 0;
  const auto read = [&](Operand operand, float* to, int stride) {
    read_piece(memory.at(product.granules[piece++]), operand, to, stride);
  };
  if (product.is_a_in_registers) {
    read_a_registers(product, f.a);
  } else {
    for (int i = 0; i < 2 * kRows; ++i) {
      if (product.is_a_transposed) {
        read(f.a_operand, f.a + 8 * (i % 2) * depth + i / 2, depth);
      } else {
        read(f.a_operand, f.a + depth / 2 * i, 1);
      }
    }
  }
  for (int i = 0; i < 2 * n; ++i) {
    if (product.is_b_transposed) {
      read(f.b_operand, f.b + i / (n / 8) * n + 8 * (i % (n / 8)), 1);
    } else {
      read(f.b_operand, f.b + depth / 2 * (i % 2) * n + i / 2, n);
    }
  }
  Accumulator& sums = *product.accumulator;
  if (product.is_init) clear(sums);
  if (sums.has_integers) {
    add_products(f, sums.integers.data());
  } else {
    add_products(f, sums.values.data());
  }
}

void multiply_small(const std::array<SmallProduct, 32>& lanes) {
  static const layout::Layout kA = layout::mma_afrag(16);
  static const layout::Layout kB = layout::mma_bfrag(16, 8);
  static const layout::Layout kD = layout::mma_acc(8);
  struct SmallPlaces {
    int a[32][8], b[32][4], d[32][4];
  };
  static const SmallPlaces at = [] {
    SmallPlaces out;
    const auto place = [](const layout::Layout& layout, int lane, int reg, int cols) {
      const std::vector<int> element = layout.coordinates_of({0, 0, lane, reg});
      return element[0] * cols + element[1];
    };
    for (int lane = 0; lane < 32; ++lane) {
      for (int r = 0; r < 8; ++r) out.a[lane][r] = place(kA, lane, r, 16);
      for (int r = 0; r < 4; ++r) out.b[lane][r] = place(kB, lane, r, 8);
      for (int r = 0; r < 4; ++r) out.d[lane][r] = place(kD, lane, r, 8);
    }
    return out;
  }();
  Factors& f = factors();
  f.a_operand = f.b_operand = lanes[0].is_f16 ? Operand::F16 : Operand::BF16;
  f.n = 8;
  float sums[kRows * 8];
  for (size_t lane = 0; lane < 32; ++lane) {
    const SmallProduct& own = lanes[lane];
    const auto value = [&](uint32_t pair, int half) {
      const auto bits = static_cast<uint16_t>(half == 0 ? pair & 0xffffu : pair >> 16);
      return own.is_f16 ? f16_value(bits) : bf16_value(bits);
    };
    for (int r = 0; r < 8; ++r) f.a[at.a[lane][r]] = value(own.a[r / 2], r % 2);
    for (int r = 0; r < 4; ++r) f.b[at.b[lane][r]] = value(own.b[r / 2], r % 2);
    for (int r = 0; r < 4; ++r) sums[at.d[lane][r]] = own.d[r];
  }
  add_products(f, sums);
  for (size_t lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 4; ++r) lanes[lane].d[r] = sums[at.d[lane][r]];
  }
}

void gather(Accumulator* accumulator) {
  for_each_register(*accumulator, value_bytes(*accumulator),
                    [](const char* at, char* value) { std::memcpy(value, at, kRegisterBytes); });
}

void scatter(Accumulator& accumulator) {
  for_each_register(accumulator, value_bytes(accumulator),
                    [](char* at, const char* value) { std::memcpy(at, value, kRegisterBytes); });
}

void poison(const Accumulator& accumulator) {
  for (char* registers : accumulator.registers) {
    for (int r = 0; r < accumulator.register_count(); ++r)
      std::memcpy(registers + r * kRegisterBytes, &kInFlight, kRegisterBytes);
  }
}

bool is_poisoned(const Accumulator& accumulator) {
  for (const char* registers : accumulator.registers) {
    for (int r = 0; r < accumulator.register_count(); ++r) {
      if (std::memcmp(registers + r * kRegisterBytes, &kInFlight, kRegisterBytes) != 0)
        return false;
    }
  }
  return true;
}

}  // namespace nautilus::emulator
