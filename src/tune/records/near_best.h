// SPDX-License-Identifier: Apache-2.0
// The winner at the nearest tuned sizes, for a program at sizes that were not tuned.
//
// A measurement at other sizes is no proof, so the cost model has a veto. The compiler's own choice
// is what the model prefers, so the model alone would refuse every other schedule. But at the tuned
// sizes it was wrong about the winner by a known factor, which is assumed to be the same nearby:
//
//   expected = measured there * predicted here / predicted there
//
// each the time of the winner over that of the compiler's own choice at these sizes. The schedule
// is used if this is at most 1. The model predicts kernels of tiles; between schedules that differ
// in other kernels alone it sees no difference, and the measurement decides.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/op.h"
#include "tune/records/best.h"

namespace nautilus::tune {

struct NearBest {
  Best best;
  std::map<std::string, int64_t> sizes;  // that it was tuned for
  double expected = 1;  // time over that of the compiler's own choice, at the hints

  bool is_used() const { return expected <= 1; }
};

// The product of the ratios of all sizes, each at least 1. Nothing if the names differ.
std::optional<double> distance(const std::map<std::string, int64_t>& a,
                               const std::map<std::string, int64_t>& b);

// Of the nearest tuned sizes other than the hints that are not farther than kNearFactor
// (tuned_plan.h), on the device with the most trials; the user's database comes first, then the
// trials that come with the compiler. Nothing if no sizes are near, or if this version of the
// compiler follows none of their schedules. `error` as for best_of.
std::optional<NearBest> near_best_of(const ir::Program& program, const std::string& path,
                                     std::string* error);

// One line for people: which schedule was chosen and from where, or why it is not used.
std::string note(const NearBest& near);

}  // namespace nautilus::tune
