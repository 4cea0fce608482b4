// SPDX-License-Identifier: Apache-2.0
// What a tensor map says: a strided view of global memory and the box that one copy moves.
//
// This is the meaning of the driver's opaque 128 bytes. The runtime encodes it for the copy engine;
// the emulator uses it directly.
#pragma once

#include <cstdint>
#include <string>

#include "layout/swizzle.h"

namespace nautilus::runtime {

inline constexpr int kMaxMapRank = 5;

enum class MapElement : uint8_t { U8, U16, U32, F16, BF16, F32 };
int element_bytes(MapElement element);

// Dimensions innermost first. The innermost is contiguous: strides[0] is the element size. The
// stride of an outer dimension of extent 1 is ignored.
struct TensorMapView {
  uint64_t address = 0;
  int64_t dims[kMaxMapRank] = {};
  int64_t strides[kMaxMapRank] = {};  // bytes
  int32_t box[kMaxMapRank] = {};      // elements that are moved
  int8_t step = 1;                    // step along the second dimension
  uint8_t rank = 0;
  MapElement element = MapElement::BF16;
  layout::Swizzle swizzle = layout::Swizzle::B128;
  // Bytes that a miss of the second-level cache fetches at least: 0 (as asked), 64, 128, 256.
  int16_t l2_promotion = 128;
};

struct alignas(64) EncodedMap {
  unsigned char bytes[128] = {};
};

// Why the copy engine cannot use this view ("the stride of dimension 2, 250 bytes, is not a
// multiple of 16"), or an empty string. The rules are those of cuTensorMapEncodeTiled. A view with
// a dimension of extent 0 has no map: launch nothing for it.
std::string map_flaw(const TensorMapView& view);

}  // namespace nautilus::runtime
