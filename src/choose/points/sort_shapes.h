// SPDX-License-Identifier: Apache-2.0
// How lanes put rows in order (lower/places/sort_kernel.h), and what it costs.
#pragma once

#include <optional>
#include <vector>

#include "lower/kernel/point_answers.h"
#include "target/target.h"

namespace nautilus::choose {

// As many elements as a row has, or the next power of two: lanes of a warp with a few each, the
// threads of a CTA where those have not enough.
lower::SortShape sort_shape(int64_t elements, const target::Target& target);

// The kernels for rows of an extent, the first with as many elements as a row is launched: one
// where it is known, otherwise one for the usual length and one for the longest rows. None where
// rows are longer than lanes put in order.
std::vector<lower::SortShape> sort_shapes(std::optional<int64_t> known, double usual,
                                          const target::Target& target);

// Cycles in which the machine sorts so many rows with a kernel of the shape, and waits for its
// steps. `places`: of the first elements, that are asked for.
double sort_cycles(double rows, double places, const lower::SortShape& shape,
                   const target::Target& target);

}  // namespace nautilus::choose
