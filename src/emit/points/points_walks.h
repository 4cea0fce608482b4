// SPDX-License-Identifier: Apache-2.0
// Walks of a warp or a CTA with several numbers of a lane: elements come and go as vectors, those
// of the next round are loaded before this one is scanned, and a round is scanned in registers,
// then across lanes, then across warps through shared memory.
//
// A row may begin anywhere. The first round begins up to a vector before it, so that vectors lie at
// multiples of their bytes if those of all tensors can at once; rounds at an edge of the row, and
// rows whose tensors do not lie alike, are read and written element by element.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

void write_walk(PointsScope& scope, const matile::LaneLoop& w);

// Names in the text of a walk with vectors, and what it takes.
struct WalkText {
  WalkText(PointsScope& scope, const matile::LaneLoop& w);

  int64_t warps;                    // of a point
  int64_t lines;                    // vectors of a thread in a round
  std::string skew;                 // elements from a multiple of a vector to where a row begins
  std::string is_even;              // all tensors lie alike
  std::string begin;                // of the first round
  std::string count;                // of all numbers
  std::string own;                  // the thread's first number of a round
  std::string round;                // the first number of this one
  std::string warp;                 // of the thread
  std::string turn;                 // of rounds that take turns at shared memory
  std::string shared;               // where it begins
  std::vector<std::string> packed;  // vectors, by reads
  int64_t shared_bytes = 0;
};

}  // namespace nautilus::emit
