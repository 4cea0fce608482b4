// SPDX-License-Identifier: Apache-2.0
// The form of a nest that is one reduction:
//
//   for i < M map
//     init Y[i] = 0.0
//     for k < K reduce
//       update Y[i] sum A[i, k]
#pragma once

#include <optional>

#include "lower/points/points_kernel.h"
#include "scalar/ops.h"

namespace nautilus::lower {

struct NestReduction {
  const scalar::Init* init = nullptr;
  const scalar::For* loop = nullptr;
  const scalar::Update* update = nullptr;
};

// Nothing for other nests.
std::optional<NestReduction> reduction_of(const MapNest& nest);

}  // namespace nautilus::lower
