// SPDX-License-Identifier: Apache-2.0
// Points whose numbers say what they read:
//
//   points i < M, j < N
//     let seen = m[i, j]
//     loop k from 0 up 5
//       assign a = a + where(seen > 0, X[i, j + k], 0.0)
//
// Each point of a thread has such numbers of its own, so texts that name places or conditions once
// for several points, those of windows and patches, do not say what such points read.
#pragma once

#include "matile/ops.h"

namespace nautilus::matile {

// Whether the place of an element, or whether it is read at all, depends on a number of the point.
bool reads_by_values(const Points& points);

}  // namespace nautilus::matile
