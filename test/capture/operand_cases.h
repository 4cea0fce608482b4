// SPDX-License-Identifier: Apache-2.0
//
// Sums of a few terms, chosen where ways to add differ: where a term is truncated, which exponent
// it counts with, and what becomes of zeros, of numbers below the normal ones and of infinities.
#pragma once

#include <vector>

#include "operand_numbers.h"

namespace nautilus::capture {

struct Term {
  int k;
  uint32_t a, b;
};

struct Case {
  uint32_t c;
  std::vector<Term> terms;
};

// Terms by their values.
struct Terms {
  const Kind& kind;

  Term power(int k, int sign, int exponent) const {
    const int half = exponent / 2;
    return {k, bits_of(kind.a, sign, half), bits_of(kind.b, 1, exponent - half)};
  }
  Term product(int k, int x, int x_exponent, int y, int y_exponent) const {
    return {k, bits_of(kind.a, x, x_exponent), bits_of(kind.b, y, y_exponent)};
  }
  // `count` powers of two, from place k on.
  std::vector<Term> powers(int k, int count, int sign, int exponent) const {
    std::vector<Term> out;
    for (int i = 0; i < count; ++i) out.push_back(power(k + i, sign, exponent));
    return out;
  }
};

inline uint32_t power_bits(int sign, int exponent) { return bits_of(kTf32, sign, exponent); }

// 1 with a small term, and a small number with 1.
inline void add_small_terms(const Kind& kind, std::vector<Case>& cases) {
  const Terms terms = {kind};
  const int f = kind.term_bits;
  for (int k = 0; k < kind.depth(); ++k) {
    for (const int exponent : {-f + 1, -f, -f - 1}) {
      for (const int sign : {1, -1})
        cases.push_back({power_bits(1, 0), {terms.power(k, sign, exponent)}});
    }
  }
  for (const int k : {0, kind.depth() - 1}) {
    for (int exponent = -f - 2; exponent <= -f + 3; ++exponent) {
      for (const int sign : {1, -1}) {
        cases.push_back({power_bits(sign, exponent), {terms.power(k, 1, 0)}});
        cases.push_back({power_bits(sign, exponent), {terms.power(k, -1, 0)}});
      }
    }
  }
  for (int count = 2; count < kind.depth(); count *= 2) {
    for (const int exponent : {-f + 1, -f, -f - 1}) {
      for (const int sign : {1, -1})
        cases.push_back({power_bits(1, 0), terms.powers(1, count, sign, exponent)});
    }
  }
}

// Products that are 2 or more have the exponent of their factors; sums that vanish; all of c's
// digits.
inline void add_exponents(const Kind& kind, std::vector<Case>& cases) {
  const Terms terms = {kind};
  const int f = kind.term_bits;
  for (const int exponent : {-f + 2, -f + 1, -f, -f - 1}) {
    for (int count = 1; count <= 4; ++count) {
      std::vector<Term> all = terms.powers(0, count, 1, exponent);
      all.push_back(terms.product(5, 3, -1, 3, -1));  // 1.5 * 1.5
      cases.push_back({0, all});
    }
    for (const int sign : {1, -1}) {
      std::vector<Term> all = terms.powers(2, 1, sign, exponent);
      all.push_back(terms.power(0, -1, 0));
      cases.push_back({power_bits(1, 0), all});
    }
  }
  for (const uint32_t c : {0x3f800001u, 0x3f800200u, 0x3f800400u, 0x3fffffffu, 0xbfffffffu,
                           0x3f7fffffu, 0x3eaaaaabu}) {
    cases.push_back({c, {}});
    for (const int exponent : {-2, 0, 2}) cases.push_back({c, {terms.power(3, 1, exponent)}});
  }
}

// Zeros of both signs and numbers below the normal ones.
inline void add_small_numbers(const Kind& kind, std::vector<Case>& cases) {
  const Terms terms = {kind};
  const uint32_t zero[] = {bits_of(kind.a, 0, 0), 1u << (8 * kind.a.bytes - 1)};
  for (const uint32_t c : {0u, 0x80000000u}) {
    cases.push_back({c, {}});
    std::vector<Term> all;
    for (int k = 0; k < kind.depth(); ++k) all.push_back({k, zero[1], bits_of(kind.b, 1, 0)});
    cases.push_back({c, all});
    cases.push_back({c, {terms.power(0, -1, 0), terms.power(1, 1, 0)}});
  }
  const int a_least =
      1 - kind.a.bias - (kind.a.bytes == 4 ? 10 : kind.a.digits);  // tf32 has 10 digits
  const int b_least = 1 - kind.b.bias - (kind.b.bytes == 4 ? 10 : kind.b.digits);
  for (const int sign : {1, -1}) {
    cases.push_back({0, {terms.product(0, sign, a_least, 1, 0)}});
    cases.push_back({0, {terms.product(0, sign, 0, 1, b_least)}});
    cases.push_back({0, {terms.product(0, sign, a_least, 1, b_least)}});
    // Beside a number below the normal ones, how much of a smaller product is kept says which
    // exponent it has.
    for (int down = 1; down <= 14; ++down) {
      const int exponent = 1 - kind.a.bias - kind.term_bits - kind.a.digits + down;
      const int half = exponent / 2;
      const bool is_held = kind.a.bytes != 4 && half >= a_least && exponent - half >= b_least;
      if (!is_held) continue;
      cases.push_back(
          {0,
           {terms.product(0, sign, a_least, 1, 0), terms.product(1, 1, half, 1, exponent - half)}});
    }
  }
  for (const uint32_t c :
       {1u, 0x200u, 0x7fffffu, 0x800001u, 0x807fffffu, 0x00ffffffu, 0x01000001u}) {
    cases.push_back({c, {}});
    cases.push_back({c, {terms.product(0, 1, a_least, 1, b_least)}});
  }
}

// Sums whose results are near the ends of f32.
inline void add_ends(const Kind& kind, std::vector<Case>& cases) {
  const Terms terms = {kind};
  const uint32_t most = 0x7f7fffffu;
  cases.push_back({most, {}});
  cases.push_back({most, {terms.power(0, 1, 0)}});
  if (kind.a.bias != 127) return;
  for (const int exponent : {100, 102, 103, 104, 127, 128}) {
    for (const int sign : {1, -1}) {
      cases.push_back({most, {terms.power(0, sign, exponent)}});
      cases.push_back({0, {terms.power(0, sign, exponent)}});
    }
  }
  cases.push_back({0, {terms.power(0, 1, 200), terms.power(1, -1, 200), terms.power(2, 1, 0)}});
  cases.push_back({0, {terms.product(0, 1, 127, 1, 127)}});
  for (const int exponent : {-125, -127, -130, -140, -148, -149, -150, -151, -152, -200}) {
    for (const int sign : {1, -1}) {
      cases.push_back({0, {terms.power(0, sign, exponent)}});
      cases.push_back({0, terms.powers(0, 4, sign, exponent)});
      cases.push_back({0x00800000u, {terms.power(0, sign, exponent)}});
    }
  }
}

inline void add_infinities(const Kind& kind, std::vector<Case>& cases) {
  const uint32_t one = bits_of(kind.b, 1, 0);
  const uint32_t sign = 1u << (8 * kind.a.bytes - 1);
  std::vector<uint32_t> odd;  // elements of A that are no numbers
  if (std::strcmp(kind.a.name, "e4m3") == 0) {
    odd = {0x7f, 0xff, 0x7e, 0xfe};
  } else {
    const uint32_t infinity = static_cast<uint32_t>(kind.a.largest + 1) << kind.a.digits;
    odd = {infinity, infinity | sign, infinity + 1, infinity | 1u << (kind.a.digits - 1),
           sign | (sign - 1)};
    if (kind.a.bytes == 4) odd.insert(odd.end(), {0x7f801fffu, 0x7f802000u, 0xff801000u});
  }
  for (const uint32_t c :
       {0u, 0x3f800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u, 0x7f800001u}) {
    cases.push_back({c, {}});
    cases.push_back({c, {{1, one == 0 ? 0 : bits_of(kind.a, 1, 0), one}}});
    for (const uint32_t a : odd) {
      cases.push_back({c, {{0, a, one}}});
      cases.push_back({c, {{0, a, 0}}});
    }
  }
  if (odd.size() > 4) cases.push_back({0, {{0, odd[0], one}, {1, odd[1], one}}});
}

inline std::vector<Case> cases_of(const Kind& kind) {
  std::vector<Case> cases;
  add_small_terms(kind, cases);
  add_exponents(kind, cases);
  add_small_numbers(kind, cases);
  add_ends(kind, cases);
  add_infinities(kind, cases);
  return cases;
}

}  // namespace nautilus::capture
