// SPDX-License-Identifier: Apache-2.0
//
// The register layout of work that no matrix instruction fixes: one axis over the threads of a warp
// group, such that each thread holds `width` neighbours and neighbouring threads hold neighbouring
// pieces. A thread then moves its piece in one access, and a warp touches one contiguous range.
//
//   line(n, width)   col = ((k*4 + warp)*32 + lane)*width + c    register (k, c)
//
// Reducing the axis leaves one value with copies in all lanes and warps, the same for every n and
// width: line_value().
//
// A short line is that of a few lanes of a warp. The layout says nothing about the other threads of
// the group: each so many lanes of them have a line of their own, spread over them alike.
//
//   line(n, width, lanes)   col = (k*lanes + lane % lanes)*width + c
#pragma once

#include <optional>

#include "layout/digits.h"

namespace nautilus::layout {

// n must be a multiple of 128 * width.
Layout line(int n, int width);

// drop_axis(line(n, width), 0).
Layout line_value();

// n must be a multiple of lanes * width, lanes a power of two up to 32.
Layout line(int n, int width, int lanes);
Layout line_value(int lanes);

// A layout seen in pieces of `width` registers that are neighbours along one axis: register r of
// the result stands for the registers width*r .. width*r + width-1, and a coordinate x of the axis
// for width*x .. width*x + width-1.
struct Pieces {
  Layout layout;
  int axis = 0;
};
// Empty if the innermost registers of the layout are not `width` neighbours.
std::optional<Pieces> pieces(const Layout& layout, int width);

}  // namespace nautilus::layout
