// SPDX-License-Identifier: Apache-2.0
// Random errors for evaluations that sample the effect of rounding on a result. The error of an
// operation depends only on its place (tensor, instruction, point) and on the seed, not on threads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace nautilus::spec {

class Noise {
 public:
  Noise() = default;  // none
  Noise(uint64_t seed, std::string_view tensor) : state_(seed) {
    for (const char c : tensor) state_ = mixed(state_, static_cast<unsigned char>(c));
    if (state_ == 0) state_ = 1;
  }

  explicit operator bool() const { return state_ != 0; }
  Noise at(const std::vector<int64_t>& point) const {
    Noise n = *this;
    for (const int64_t x : point) n.state_ = mixed(n.state_, static_cast<uint64_t>(x));
    return n;
  }
  // Uniform in [-1, 1), for the lane of an instruction.
  double error(size_t instruction, int64_t lane) const {
    base::Random random(mixed(state_, instruction) + static_cast<uint64_t>(lane));
    return 2 * random.uniform() - 1;
  }

 private:
  static uint64_t mixed(uint64_t state, uint64_t x) { return base::Random(state ^ x).next(); }

  uint64_t state_ = 0;
};

}  // namespace nautilus::spec
