// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace nautilus::base {
namespace {

// The first 32 bits of the fractions of roots of the first primes, which is how the standard
// defines its constants: square roots for the start, cube roots for the rounds. Roots are found in
// integers, so that no rounding of a library matters.
struct Sha256Constants {
  std::array<uint32_t, 8> start = {};
  std::array<uint32_t, 64> rounds = {};

  Sha256Constants() {
    size_t count = 0;
    for (uint32_t n = 2; count < rounds.size(); ++n) {
      bool is_prime = true;
      for (uint32_t d = 2; d * d <= n; ++d) is_prime &= n % d != 0;
      if (!is_prime) continue;
      if (count < start.size()) start[count] = fraction(n, 2);
      rounds[count++] = fraction(n, 3);
    }
  }

  // Bits of the largest x with (x / 2^32)^power <= n, below the point.
  static uint32_t fraction(uint32_t n, int power) {
    using Wide = unsigned __int128;
    uint64_t x = 0;
    for (uint64_t bit = uint64_t{1} << 37; bit != 0; bit >>= 1) {
      const uint64_t tried = x | bit;
      // tried^power <= n * 2^(32 power), without leaving 128 bits: tried has 38 bits at most.
      const Wide square = Wide{tried} * tried;
      const bool fits = power == 2 ? square <= Wide{n} << 64 : square * tried <= Wide{n} << 96;
      if (fits) x = tried;
    }
    return static_cast<uint32_t>(x);
  }
};

void add_block(std::array<uint32_t, 8>& state, const unsigned char* block,
               const Sha256Constants& constants) {
  std::array<uint32_t, 64> w = {};
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t b = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + constants.rounds[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += added[i];
}

}  // namespace

std::string sha256(std::string_view bytes) {
  static const Sha256Constants constants;
  std::array<uint32_t, 8> state = constants.start;
  // One bit after the message, zeros, and its length in bits fill the last block.
  std::vector<unsigned char> tail(bytes.end() - static_cast<ptrdiff_t>(bytes.size() % 64),
                                  bytes.end());
  tail.push_back(0x80);
  while (tail.size() % 64 != 56) tail.push_back(0);
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8)
    tail.push_back(static_cast<unsigned char>(bits >> shift));
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  for (size_t i = 0; i + 64 <= bytes.size(); i += 64) add_block(state, data + i, constants);
  for (size_t i = 0; i < tail.size(); i += 64) add_block(state, tail.data() + i, constants);
  std::string out;
  for (uint32_t word : state) out += fmt::format("{:08x}", word);
  return out;
}

}  // namespace nautilus::base
