// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine (the standard distributions are not).
#pragma once

#include <cmath>
#include <cstdint>

namespace nautilus::base {

// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // Uniform in [low, high], both included.
  int64_t integer(int64_t low, int64_t high) {
    const auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    return low + static_cast<int64_t>(range == 0 ? next() : next() % range);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return uniform() < probability; }
  double normal() {
    const double u = 1 - uniform();
    const double v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

 private:
  uint64_t state_;
};

}  // namespace nautilus::base
