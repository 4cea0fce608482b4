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
// where it is known, otherwise one for the usual length, one for the longest rows that lanes put in
// order, and one whose lanes do so with runs of longer rows.
std::vector<lower::SortShape> sort_shapes(std::optional<int64_t> known, double usual,
                                          const target::Target& target);

// How so many runs of a row are merged: `run` elements were put in order, of which so many are
// kept.
decision::Merge merge_shape(int64_t run, int64_t kept, double runs, const target::Target& target);

// Cycles in which the machine sorts so many rows with a kernel of the shape, and waits for its
// steps. `places`: of the first elements, that are asked for.
double sort_cycles(double rows, double places, const lower::SortShape& shape,
                   const target::Target& target);

// Cycles in which it merges so many runs of each row, by elements that are kept of them.
double merge_cycles(double rows, double runs, int64_t run, int64_t kept,
                    const target::Target& target);

}  // namespace nautilus::choose
