// SPDX-License-Identifier: Apache-2.0
#include "emulator/product.h"

#include <fmt/format.h>

#include <cstring>

#include "emulator/half.h"
#include "layout/descriptor.h"
#include "layout/fragments.h"

namespace nautilus::emulator {
namespace {

constexpr int kMaxN = 256;

// Eight floats at any address: N is a multiple of 8, so no product has a remainder.
typedef float Vector __attribute__((vector_size(32), aligned(4), may_alias));

struct Places {
  // Register r of a lane holds element place[lane][r] of a 16-row matrix: row * 256 + column of the
  // accumulator, row * 16 + column of A.
  std::array<std::array<uint16_t, kMaxN / 2>, 32> accumulator;
  std::array<std::array<uint16_t, 8>, 32> a;
};

// Both layouts put the first columns into the first registers, so the widest serves all.
const Places& places() {
  static const Places table = [] {
    Places out;
    const layout::Layout acc = layout::acc(kMaxN);
    const layout::Layout a = layout::afrag(kDepth);
    for (int lane = 0; lane < 32; ++lane) {
      const auto l = static_cast<size_t>(lane);
      for (size_t r = 0; r < kMaxN / 2; ++r) {
        const std::vector<int> at = acc.coordinates_of({0, 0, lane, static_cast<int>(r)});
        out.accumulator[l][r] = static_cast<uint16_t>(at[0] * kMaxN + at[1]);
      }
      for (size_t r = 0; r < 8; ++r) {
        const std::vector<int> at = a.coordinates_of({0, 0, lane, static_cast<int>(r)});
        out.a[l][r] = static_cast<uint16_t>(at[0] * kDepth + at[1]);
      }
    }
    return out;
  }();
  return table;
}

void convert_piece(const unsigned char* from, bool is_f16, float* to, int stride) {
  uint16_t bits[8];
  std::memcpy(bits, from, 16);
  for (int i = 0; i < 8; ++i) to[i * stride] = is_f16 ? f16_value(bits[i]) : bf16_value(bits[i]);
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

std::vector<uint32_t> a_pieces(uint64_t descriptor, int warp, bool is_transposed) {
  const layout::MatrixDescriptor fields = layout::decode(descriptor);
  std::vector<uint32_t> out;
  out.reserve(2 * kRows);
  for (int k = 0; is_transposed && k < kDepth; ++k) {
    for (int row = 0; row < kRows; row += 8) {
      out.push_back(layout::operand_address(fields, layout::Major::MN, warp * kRows + row, k));
    }
  }
  for (int row = 0; !is_transposed && row < kRows; ++row) {
    for (int k = 0; k < kDepth; k += 8) {
      out.push_back(layout::operand_address(fields, layout::Major::K, warp * kRows + row, k));
    }
  }
  return out;
}

std::vector<uint32_t> b_pieces(uint64_t descriptor, int n, bool is_transposed) {
  const layout::MatrixDescriptor fields = layout::decode(descriptor);
  std::vector<uint32_t> out;
  out.reserve(static_cast<size_t>(2 * n));
  if (is_transposed) {
    for (int k = 0; k < kDepth; ++k) {
      for (int col = 0; col < n; col += 8) {
        out.push_back(layout::operand_address(fields, layout::Major::MN, col, k));
      }
    }
  } else {
    for (int col = 0; col < n; ++col) {
      for (int k = 0; k < kDepth; k += 8) {
        out.push_back(layout::operand_address(fields, layout::Major::K, col, k));
      }
    }
  }
  return out;
}

void multiply(const Product& product, SharedMemory& memory) {
  const int n = product.n;
  float a[kRows * kDepth];
  float b[kDepth * kMaxN];
  size_t piece = 0;
  if (product.is_a_in_registers) {
    for (size_t lane = 0; lane < 32; ++lane) {
      for (size_t r = 0; r < 8; ++r) {
        const uint32_t pair = product.a_values[lane][r / 2];
        const auto bits = static_cast<uint16_t>(r % 2 == 0 ? pair & 0xffffu : pair >> 16);
        a[places().a[lane][r]] = product.is_f16 ? f16_value(bits) : bf16_value(bits);
      }
    }
  } else {
    for (int i = 0; i < 2 * kRows; ++i) {
      const unsigned char* from = memory.at(product.granules[piece++]);
      if (product.is_a_transposed) {
        convert_piece(from, product.is_f16, a + 8 * (i % 2) * kDepth + i / 2, kDepth);
      } else {
        convert_piece(from, product.is_f16, a + 8 * i, 1);
      }
    }
  }
  for (int i = 0; i < 2 * n; ++i) {
    const unsigned char* from = memory.at(product.granules[piece++]);
    if (product.is_b_transposed) {
      convert_piece(from, product.is_f16, b + i / (n / 8) * n + 8 * (i % (n / 8)), 1);
    } else {
      convert_piece(from, product.is_f16, b + 8 * (i % 2) * n + i / 2, n);
    }
  }
  float* values = product.accumulator->values.data();
  if (product.is_init) std::memset(values, 0, sizeof(float) * static_cast<size_t>(kRows * n));
  for (int row = 0; row < kRows; row += 4) {
    for (int col = 0; col < n; col += 8) {
      Vector sum[4];
      for (int r = 0; r < 4; ++r) {
        sum[r] = *reinterpret_cast<const Vector*>(values + (row + r) * n + col);
      }
      for (int k = 0; k < kDepth; ++k) {
        const Vector right = *reinterpret_cast<const Vector*>(b + k * n + col);
        for (int r = 0; r < 4; ++r) sum[r] += a[(row + r) * kDepth + k] * right;
      }
      for (int r = 0; r < 4; ++r) {
        *reinterpret_cast<Vector*>(values + (row + r) * n + col) = sum[r];
      }
    }
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
  float a[16 * 16];
  float b[16 * 8];
  for (size_t lane = 0; lane < 32; ++lane) {
    const SmallProduct& own = lanes[lane];
    const auto value = [&](uint32_t pair, int half) {
      const auto bits = static_cast<uint16_t>(half == 0 ? pair & 0xffffu : pair >> 16);
      return own.is_f16 ? f16_value(bits) : bf16_value(bits);
    };
    for (int r = 0; r < 8; ++r) a[at.a[lane][r]] = value(own.a[r / 2], r % 2);
    for (int r = 0; r < 4; ++r) b[at.b[lane][r]] = value(own.b[r / 2], r % 2);
  }
  for (size_t lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 4; ++r) {
      const int row = at.d[lane][r] / 8;
      const int col = at.d[lane][r] % 8;
      float sum = lanes[lane].d[r];
      for (int k = 0; k < 16; ++k) sum += a[row * 16 + k] * b[k * 8 + col];
      lanes[lane].d[r] = sum;
    }
  }
}

void gather(Accumulator* accumulator) {
  const int n = accumulator->n;
  for (size_t lane = 0; lane < 32; ++lane) {
    for (size_t r = 0; r < static_cast<size_t>(n / 2); ++r) {
      const int place = places().accumulator[lane][r];
      accumulator->values[static_cast<size_t>(place / kMaxN * n + place % kMaxN)] =
          accumulator->registers[lane][r];
    }
  }
}

void scatter(const Accumulator& accumulator) {
  const int n = accumulator.n;
  for (size_t lane = 0; lane < 32; ++lane) {
    for (size_t r = 0; r < static_cast<size_t>(n / 2); ++r) {
      const int place = places().accumulator[lane][r];
      accumulator.registers[lane][r] =
          accumulator.values[static_cast<size_t>(place / kMaxN * n + place % kMaxN)];
    }
  }
}

void poison(const Accumulator& accumulator) {
  const float pattern = float_of_bits(kInFlight);
  for (float* registers : accumulator.registers) {
    for (int r = 0; r < accumulator.register_count(); ++r) std::memcpy(registers + r, &pattern, 4);
  }
}

bool is_poisoned(const Accumulator& accumulator) {
  for (const float* registers : accumulator.registers) {
    for (int r = 0; r < accumulator.register_count(); ++r) {
      if (bits_of_float(registers[r]) != kInFlight) return false;
    }
  }
  return true;
}

}  // namespace nautilus::emulator
