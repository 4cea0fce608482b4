// SPDX-License-Identifier: Apache-2.0
#include "layout/line.h"

#include "base/check.h"
#include "layout/convert.h"

namespace nautilus::layout {

Layout line(int n, int width) {
  NAUT_CHECK(width >= 1 && n >= 1 && n % (128 * width) == 0,
             "a line of {} elements, {} at a time over 128 threads", n, width);
  return Layout(
      1, {{.axis = 0, .extent = width, .stride = 1, .owner_stride = 1},
          {.axis = 0, .extent = 32, .stride = width, .owner = Owner::Lane},
          {.axis = 0, .extent = 4, .stride = 32 * width, .owner = Owner::Warp},
          {.axis = 0, .extent = n / (128 * width), .stride = 128 * width, .owner_stride = width}});
}

Layout line_value() { return drop_axis(line(128, 1), 0).result; }

Layout line(int n, int width, int lanes) {
  NAUT_CHECK(width >= 1 && n >= 1 && lanes >= 1 && n % (lanes * width) == 0,
             "a line of {} elements, {} at a time over {} lanes", n, width, lanes);
  return Layout(
      1,
      {{.axis = 0, .extent = width, .stride = 1, .owner_stride = 1},
       {.axis = 0, .extent = lanes, .stride = width, .owner = Owner::Lane},
       {.axis = 0, .extent = n / (lanes * width), .stride = lanes * width, .owner_stride = width}});
}

Layout line_value(int lanes) { return drop_axis(line(lanes, 1, lanes), 0).result; }

std::optional<Pieces> pieces(const Layout& layout, int width) {
  int axis = kCopies;
  for (const Digit& d : layout.digits()) {
    if (d.owner == Owner::Register && d.owner_stride == 1 && d.stride == 1 && d.extent % width == 0)
      axis = d.axis;
  }
  if (axis == kCopies) return std::nullopt;
  std::vector<Digit> digits;
  for (Digit d : layout.digits()) {
    const bool is_innermost = d.axis == axis && d.stride == 1;
    if (is_innermost) {
      d.extent /= width;
    } else {
      if (d.axis == axis) d.stride /= width;
      if (d.owner == Owner::Register) d.owner_stride /= width;
    }
    digits.push_back(d);
  }
  return Pieces{Layout(layout.rank(), std::move(digits)), axis};
}

}  // namespace nautilus::layout
