// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_map.h"

#include <fmt/format.h>

namespace nautilus::runtime {

int element_bytes(MapElement element) {
  switch (element) {
    case MapElement::U8:
      return 1;
    case MapElement::U16:
    case MapElement::F16:
    case MapElement::BF16:
      return 2;
    case MapElement::U32:
    case MapElement::F32:
      return 4;
  }
  return 0;
}

// Runs before every launch, so the view that has no flaw must not cost more than its comparisons.
std::string map_flaw(const TensorMapView& v) {
  const int bytes = element_bytes(v.element);
  if (v.rank < 1 || v.rank > kMaxMapRank) {
    return fmt::format("a tensor map has 1 to {} dimensions, not {}", kMaxMapRank, v.rank);
  }
  if (v.address == 0) return "the address is null";
  if (v.address % 16 != 0) {
    return fmt::format("the address, {:#x}, is not a multiple of 16", v.address);
  }
  if (v.strides[0] != bytes) {
    return fmt::format(
        "the innermost dimension is not contiguous: its stride is {} bytes, an element has {}",
        v.strides[0], bytes);
  }
  for (int i = 0; i < v.rank; ++i) {
    const int64_t extent = v.dims[i];
    if (extent == 0) {
      return fmt::format("dimension {} is empty: there is nothing to copy, so launch nothing", i);
    }
    if (extent < 0 || extent > int64_t{1} << 32) {
      return fmt::format("the extent of dimension {}, {}, is not in 1 to 2^32", i, extent);
    }
    const int64_t stride = v.strides[i];
    if (i > 0 && extent > 1) {
      if (stride < 0 || stride >= int64_t{1} << 40) {
        return fmt::format("the stride of dimension {}, {} bytes, is not in 0 to 2^40 - 1", i,
                           stride);
      }
      if (stride % 16 != 0) {
        return fmt::format("the stride of dimension {}, {} bytes, is not a multiple of 16", i,
                           stride);
      }
    }
    if (v.box[i] < 1 || v.box[i] > 256) {
      return fmt::format("the box has {} elements in dimension {}, not 1 to 256", v.box[i], i);
    }
  }
  if (v.step < 1 || v.step > 8 || (v.rank > 1 && (v.box[1] - 1) * v.step >= 256)) {
    return fmt::format("a box of {} elements in steps of {} reaches further than 256", v.box[1],
                       v.step);
  }
  const int row = v.box[0] * bytes;
  if (row % 16 != 0) {
    return fmt::format("a row of the box, {} bytes, is not a multiple of 16", row);
  }
  if (v.swizzle != layout::Swizzle::None && row > layout::span_bytes(v.swizzle)) {
    return fmt::format("a row of the box, {} bytes, is wider than the span of the {} swizzle", row,
                       layout::swizzle_name(v.swizzle));
  }
  if (v.l2_promotion != 0 && v.l2_promotion != 64 && v.l2_promotion != 128 &&
      v.l2_promotion != 256) {
    return fmt::format("the L2 promotion is {} bytes, not 0, 64, 128 or 256", v.l2_promotion);
  }
  return "";
}

}  // namespace nautilus::runtime
