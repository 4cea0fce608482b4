// SPDX-License-Identifier: Apache-2.0
//
// What a matrix unit is asked about its operands, and how the answers are written down: a Hopper
// GPU is asked by operand_capture.cu, whose output is test data, and the emulator by a test, whose
// answers must be the same text.
//
// Lines of the text; bits are hexadecimal, KIND is the type of A and, where that of B is another
// one, _ and the type of B:
//
//     place a|b KIND SWIZZLE STEP FIRST*COUNT ...
//         Where the unit reads the operand, 64 rows of A or columns of B, in panels of SWIZZLE
//         bytes: the elements of all rows one after the other, each as its distance from the tile's
//         start in elements; COUNT of them follow one another.
//     case KIND C K:A:B,K:A:B,... D
//         D = C + the products of A and B at the places K along k; the other places hold 0.
//     random KIND SEED SPREAD HASH D ...
//         D = C + A B of 64 x 64 with the numbers of class Numbers: A by rows, B by columns, then C
//         by rows. HASH is over all of D by rows, h = (h ^ d) * 16777619 from 2166136261; then come
//         the elements of the diagonal.
#pragma once

#include <string>
#include <vector>

#include "operand_cases.h"

namespace nautilus::capture {

// Multiplies for kKinds[kind].
using Multiply = void (*)(int kind, Product& product);

// The text of a printf.
template <class... Values>
std::string written(const char* format, Values... values) {
  char out[256];
  std::snprintf(out, sizeof out, format, values...);
  return out;
}

// Every element of the tile holds a digit of its own place, which all types hold; the other operand
// is a unit matrix.
inline std::vector<int> read_places(Multiply multiply, int index, bool is_a, int span, int step) {
  static Product p;
  const Kind& kind = kKinds[index];
  const Type& type = is_a ? kind.a : kind.b;
  const Type& other = is_a ? kind.b : kind.a;
  const int tile = is_a ? 0 : kTile;
  std::vector<int> places(64 * static_cast<size_t>(kind.depth()));
  for (int weight = 1; weight < kTile / type.bytes; weight *= 8) {
    prepare(p);
    for (int i = 0; i < kTile / type.bytes; ++i) {
      const uint32_t bits = bits_of(type, i / weight % 8, 0);
      std::memcpy(p.smem + tile + i * type.bytes, &bits, static_cast<size_t>(type.bytes));
    }
    for (int k = 0; k < kind.depth(); ++k) {
      put_element(p, kTile - tile, k, k, other.bytes, bits_of(other, 1, 0));
    }
    (is_a ? p.a : p.b) = fields(span);
    (is_a ? p.a_start : p.b_start) += 32 * step / span * 64 * span + 32 * step % span;
    multiply(index, p);
    for (int row = 0; row < 64; ++row) {
      for (int k = 0; k < kind.depth(); ++k) {
        const float digit = is_a ? p.sums[row * 64 + k] : p.sums[k * 64 + row];
        places[static_cast<size_t>(row * kind.depth() + k)] += weight * static_cast<int>(digit);
      }
    }
  }
  return places;
}

inline std::string place_line(Multiply multiply, int index, bool is_a, int span, int step) {
  const std::vector<int> places = read_places(multiply, index, is_a, span, step);
  std::string line = written("place %s %s %d %d", is_a ? "a" : "b", kKinds[index].name, span, step);
  for (size_t i = 0; i < places.size();) {
    size_t end = i + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    line += written(" %d*%d", places[i], static_cast<int>(end - i));
    i = end;
  }
  return line;
}

inline std::string case_line(const Kind& kind, const Case& one, float result) {
  std::string line = written("case %s %x ", kind.name, one.c);
  for (size_t t = 0; t < one.terms.size(); ++t) {
    const Term& term = one.terms[t];
    line += written("%s%d:%x:%x", t == 0 ? "" : ",", term.k, term.a, term.b);
  }
  return line + written("%s %x", one.terms.empty() ? "-" : "", bits_of(result));
}

// Element i of the diagonal is case i.
inline void answer_cases(Multiply multiply, int index, std::vector<std::string>& lines) {
  static Product p;
  const Kind& kind = kKinds[index];
  const std::vector<Case> cases = cases_of(kind);
  for (size_t first = 0; first < cases.size(); first += 64) {
    const size_t count = cases.size() - first < 64 ? cases.size() - first : 64;
    prepare(p);
    for (size_t i = 0; i < count; ++i) {
      p.sums[i * 65] = float_of(cases[first + i].c);
      for (const Term& term : cases[first + i].terms) {
        put_element(p, 0, static_cast<int>(i), term.k, kind.a.bytes, term.a);
        put_element(p, kTile, static_cast<int>(i), term.k, kind.b.bytes, term.b);
      }
    }
    multiply(index, p);
    for (size_t i = 0; i < count; ++i) {
      lines.push_back(case_line(kind, cases[first + i], p.sums[i * 65]));
    }
  }
}

inline std::string random_line(Multiply multiply, int index, uint32_t seed, int spread) {
  static Product p;
  const Kind& kind = kKinds[index];
  prepare(p);
  Numbers numbers(seed, spread);
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < kind.depth(); ++k) {
      put_element(p, 0, row, k, kind.a.bytes, numbers.element(kind.a));
    }
  }
  for (int column = 0; column < 64; ++column) {
    for (int k = 0; k < kind.depth(); ++k) {
      put_element(p, kTile, column, k, kind.b.bytes, numbers.element(kind.b));
    }
  }
  for (float& c : p.sums) c = float_of(numbers.sum());
  multiply(index, p);
  uint32_t hash = 2166136261u;
  for (const float& d : p.sums) hash = (hash ^ bits_of(d)) * 16777619u;
  std::string line = written("random %s %u %d %x", kind.name, seed, spread, hash);
  for (int i = 0; i < 64; ++i) line += written(" %x", bits_of(p.sums[i * 65]));
  return line;
}

// All answers, line by line.
inline std::vector<std::string> answers(Multiply multiply) {
  std::vector<std::string> lines;
  for (int index = 0; index < kKindCount; ++index) {
    for (const bool is_a : {true, false}) {
      for (const int span : {128, 64}) {
        for (int step = 0; step < 4; ++step) {
          lines.push_back(place_line(multiply, index, is_a, span, step));
        }
      }
    }
    answer_cases(multiply, index, lines);
    uint32_t seed = 1;
    for (const int spread : {0, 1, 2, 4, 8, 16, 60, 130}) {
      lines.push_back(random_line(multiply, index, seed++, spread));
    }
  }
  return lines;
}

}  // namespace nautilus::capture
