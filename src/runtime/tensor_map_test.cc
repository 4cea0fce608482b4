// SPDX-License-Identifier: Apache-2.0
// What the copy engine refuses, and that the text names the number at fault.
#include "runtime/tensor_map.h"

#include <gtest/gtest.h>

namespace nautilus::runtime {
namespace {

// Keys of one batch of attention: [heads 3][rows 1001][d 128], boxes of 64 rows x 64 elements.
TensorMapView keys() {
  TensorMapView v;
  v.address = 0x7f0000001230;
  v.rank = 3;
  const int64_t dims[] = {128, 1001, 3};
  const int64_t strides[] = {2, 256, 256 * 1001};
  const int32_t box[] = {64, 64, 1};
  for (int i = 0; i < 3; ++i) {
    v.dims[i] = dims[i];
    v.strides[i] = strides[i];
    v.box[i] = box[i];
  }
  return v;
}

// The flaw of `keys()` after one change.
template <class F>
std::string flaw(F&& change) {
  TensorMapView v = keys();
  change(v);
  return map_flaw(v);
}

TEST(TensorMap, ElementSizes) {
  EXPECT_EQ(element_bytes(MapElement::U8), 1);
  EXPECT_EQ(element_bytes(MapElement::U16), 2);
  EXPECT_EQ(element_bytes(MapElement::F16), 2);
  EXPECT_EQ(element_bytes(MapElement::BF16), 2);
  EXPECT_EQ(element_bytes(MapElement::U32), 4);
  EXPECT_EQ(element_bytes(MapElement::F32), 4);
}

TEST(TensorMap, AcceptsWhatTheEngineAccepts) {
  EXPECT_EQ(map_flaw(keys()), "");
  // Extents are free, only strides are not; a box may be larger than the tensor.
  EXPECT_EQ(flaw([](auto& v) { v.dims[0] = 101; }), "");
  EXPECT_EQ(flaw([](auto& v) { v.dims[1] = 1; }), "");
  EXPECT_EQ(flaw([](auto& v) { v.box[1] = 256; }), "");
  // Limits that are still inside.
  EXPECT_EQ(flaw([](auto& v) { v.dims[2] = int64_t{1} << 32; }), "");
  EXPECT_EQ(flaw([](auto& v) { v.strides[2] = (int64_t{1} << 40) - 16; }), "");
  // A narrow row under a wide swizzle, and a wide row without one.
  EXPECT_EQ(flaw([](auto& v) { v.box[0] = 8; }), "");
  EXPECT_EQ(flaw([](auto& v) {
              v.box[0] = 256;
              v.swizzle = layout::Swizzle::None;
            }),
            "");
  // The stride of a dimension of extent 1 is never used: frameworks leave anything there.
  EXPECT_EQ(flaw([](auto& v) {
              v.dims[2] = 1;
              v.strides[2] = 7;
            }),
            "");
  // Only the dimensions of the rank count.
  EXPECT_EQ(flaw([](auto& v) {
              v.rank = 1;
              v.strides[1] = 3;
            }),
            "");
  for (const int bytes : {0, 64, 128, 256}) {
    EXPECT_EQ(flaw([bytes](auto& v) { v.l2_promotion = static_cast<int16_t>(bytes); }), "");
  }
}

TEST(TensorMap, NamesTheFlaw) {
  EXPECT_EQ(flaw([](auto& v) { v.rank = 0; }), "a tensor map has 1 to 5 dimensions, not 0");
  EXPECT_EQ(flaw([](auto& v) { v.rank = 6; }), "a tensor map has 1 to 5 dimensions, not 6");
  EXPECT_EQ(flaw([](auto& v) { v.address = 0; }), "the address is null");
  EXPECT_EQ(flaw([](auto& v) { v.address += 8; }),
            "the address, 0x7f0000001238, is not a multiple of 16");
  EXPECT_EQ(flaw([](auto& v) { v.strides[0] = 4; }),
            "the innermost dimension is not contiguous: its stride is 4 bytes, an element has 2");
  EXPECT_EQ(flaw([](auto& v) { v.strides[1] = 250; }),
            "the stride of dimension 1, 250 bytes, is not a multiple of 16");
  EXPECT_EQ(flaw([](auto& v) { v.strides[2] = -256; }),
            "the stride of dimension 2, -256 bytes, is not in 0 to 2^40 - 1");
  EXPECT_EQ(flaw([](auto& v) { v.strides[2] = int64_t{1} << 40; }),
            "the stride of dimension 2, 1099511627776 bytes, is not in 0 to 2^40 - 1");
  EXPECT_EQ(flaw([](auto& v) { v.dims[2] = (int64_t{1} << 32) + 1; }),
            "the extent of dimension 2, 4294967297, is not in 1 to 2^32");
  EXPECT_EQ(flaw([](auto& v) { v.dims[1] = -1; }),
            "the extent of dimension 1, -1, is not in 1 to 2^32");
  EXPECT_EQ(flaw([](auto& v) { v.dims[1] = 0; }),
            "dimension 1 is empty: there is nothing to copy, so launch nothing");
  EXPECT_EQ(flaw([](auto& v) { v.box[1] = 0; }),
            "the box has 0 elements in dimension 1, not 1 to 256");
  EXPECT_EQ(flaw([](auto& v) { v.box[1] = 257; }),
            "the box has 257 elements in dimension 1, not 1 to 256");
  EXPECT_EQ(flaw([](auto& v) { v.box[0] = 12; }),
            "a row of the box, 24 bytes, is not a multiple of 16");
  EXPECT_EQ(flaw([](auto& v) { v.box[0] = 128; }),
            "a row of the box, 256 bytes, is wider than the span of the 128B swizzle");
  EXPECT_EQ(flaw([](auto& v) { v.swizzle = layout::Swizzle::B64; }),
            "a row of the box, 128 bytes, is wider than the span of the 64B swizzle");
  EXPECT_EQ(flaw([](auto& v) { v.l2_promotion = 32; }),
            "the L2 promotion is 32 bytes, not 0, 64, 128 or 256");
}

}  // namespace
}  // namespace nautilus::runtime
