// SPDX-License-Identifier: Apache-2.0
// The driver's numbers for the properties of a tensor map (cuda.h), for code that encodes one and
// for emitted text that will.
#pragma once

#include "runtime/tensor_map.h"

namespace nautilus::runtime {

// Numbers of CUtensorMapDataType.
inline int element_code(MapElement element) {
  switch (element) {
    case MapElement::U8:
      return 0;
    case MapElement::U16:
      return 1;
    case MapElement::U32:
      return 2;
    case MapElement::F16:
      return 6;
    case MapElement::F32:
      return 7;
    case MapElement::BF16:
      return 9;
  }
  return 0;
}

// Numbers of CUtensorMapSwizzle.
inline int swizzle_code(layout::Swizzle swizzle) {
  switch (swizzle) {
    case layout::Swizzle::None:
      return 0;
    case layout::Swizzle::B32:
      return 1;
    case layout::Swizzle::B64:
      return 2;
    case layout::Swizzle::B128:
      return 3;
  }
  return 0;
}

// Numbers of CUtensorMapL2promotion.
inline int promotion_code(int bytes) {
  return bytes == 64 ? 1 : bytes == 128 ? 2 : bytes == 256 ? 3 : 0;
}

}  // namespace nautilus::runtime
