// SPDX-License-Identifier: Apache-2.0
// How many sequences of copies the loop of a kernel has. Products run one after the other, and what
// a product is the first to need is fetched together:
//
//   S = Q * K1 + Q * K2       K1 | K2 | P, V: three sequences; Q, which does not move with the
//   O = P * V                 streamed axis, is fetched once
#pragma once

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

int copy_sequences(const Fusion& fusion);

}  // namespace nautilus::schedule
