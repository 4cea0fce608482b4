// SPDX-License-Identifier: Apache-2.0
//
// The matrix unit must read what the copy engine wrote: for every mode, shape and k-step, the
// address of each operand element is that of the same element in the box. Also the numbers that
// hand-written kernels are known to use.
#include "layout/descriptor.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/random.h"

namespace nautilus::layout {
namespace {

constexpr std::array kSwizzles = {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128};

TEST(Descriptor, Fields) {
  const MatrixDescriptor descriptor = {0x12340, 16, 1024, 0, Swizzle::B128};
  EXPECT_EQ(encode(descriptor), 0x4000'0040'0001'1234u);
  EXPECT_EQ(encode({0, 0, 0, 5, Swizzle::B32}), 0xC00A'0000'0000'0000u);
  EXPECT_EQ(encode({0x3FFF0, 0x3FFF0, 0x3FFF0, 7, Swizzle::B64}), 0x800E'3FFF'3FFF'3FFFu);
}

TEST(Descriptor, RoundTrips) {
  base::Random random(1);
  for (int round = 0; round < 10000; ++round) {
    const auto offset = [&] {
      return static_cast<uint32_t>(random.integer(0, (1 << 14) - 1)) * 16;
    };
    const MatrixDescriptor descriptor = {offset(), offset(), offset(),
                                         static_cast<uint32_t>(random.integer(0, 7)),
                                         kSwizzles[static_cast<size_t>(random.integer(0, 3))]};
    EXPECT_EQ(decode(encode(descriptor)), descriptor);
  }
}

TEST(Descriptor, ValuesOfKnownKernels) {
  // A and B of a GEMM, 64 elements of k per stage: +32 bytes per k-step.
  const Operand k_major = {{128, 64}, Major::K, 0x400, 0};
  EXPECT_EQ(step_descriptor(k_major, 0), (MatrixDescriptor{0x400, 16, 1024, 0, Swizzle::B128}));
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(step_advance(k_major, step), 2u * static_cast<uint32_t>(step));
  }
  // The second warp group has rows 64..127.
  EXPECT_EQ(step_descriptor({{128, 64}, Major::K, 0x400, 64}, 0).start, 0x400u + 8192u);
  // K of attention, 80 x 128 in two panels: step 4 is in the second.
  EXPECT_EQ(step_advance({{80, 128}, Major::K, 0, 0}, 4), 80u * 128 / 16);
  // V of attention, 80 x 128: rows are k, LBO is the panel, +2048 bytes per k-step.
  const Operand mn_major = {{80, 128}, Major::MN, 0, 0};
  EXPECT_EQ(step_descriptor(mn_major, 0), (MatrixDescriptor{0, 80 * 128, 1024, 0, Swizzle::B128}));
  EXPECT_EQ(step_advance(mn_major, 1), 128u);
  EXPECT_EQ(mn_major.k_steps(), 5);
}

TEST(Descriptor, ValuesOfOtherModes) {
  EXPECT_EQ(step_descriptor({{64, 32, Swizzle::B64}, Major::K, 0, 0}, 1),
            (MatrixDescriptor{32, 16, 512, 0, Swizzle::B64}));
  EXPECT_EQ(step_descriptor({{64, 32, Swizzle::B32}, Major::K, 0, 0}, 1),
            (MatrixDescriptor{64 * 32, 16, 256, 0, Swizzle::B32}));
  EXPECT_EQ(step_descriptor({{64, 32, Swizzle::None}, Major::K, 0, 0}, 1),
            (MatrixDescriptor{2 * 64 * 16, 64 * 16, 128, 0, Swizzle::None}));
  EXPECT_EQ(step_descriptor({{64, 64, Swizzle::B64}, Major::MN, 0, 0}, 1),
            (MatrixDescriptor{1024, 64 * 64, 512, 0, Swizzle::B64}));
  EXPECT_EQ(step_descriptor({{64, 64, Swizzle::B32}, Major::MN, 0, 0}, 1),
            (MatrixDescriptor{512, 64 * 32, 256, 0, Swizzle::B32}));
  EXPECT_EQ(step_descriptor({{64, 64, Swizzle::None}, Major::MN, 0, 0}, 1),
            (MatrixDescriptor{256, 128, 64 * 16, 0, Swizzle::None}));
}

// Stepping by an addition to the encoded word is stepping the start address.
TEST(Descriptor, AdvanceIsAnAddition) {
  for (const Swizzle swizzle : kSwizzles) {
    for (const Major major : {Major::K, Major::MN}) {
      const Operand operand = {{128, 128, swizzle}, major, 2048, 0};
      for (int step = 0; step < operand.k_steps(); ++step) {
        EXPECT_EQ(encode(step_descriptor(operand, step)),
                  encode(step_descriptor(operand, 0)) + step_advance(operand, step));
      }
    }
  }
}

// The box that is copied to the tile of an operand, and the element in it.
uint32_t box_address(const Operand& operand, int mn, int k) {
  const PanelTile& tile = operand.tile;
  const int row = operand.major == Major::K ? mn : k;
  const int col = operand.major == Major::K ? k : mn;
  const int inner = tile.panel_cols();
  const std::array box = {inner, tile.rows, tile.panels()};
  const std::array at = {col % inner, row, col / inner};
  return operand.base + tma_box_offset(box, at, tile.swizzle, tile.element_bytes);
}

// Reads the whole operand, all k-steps and all instructions of `instruction_mn` rows or columns,
// and compares each address with the box. Every element must be read once.
void check_operand(const PanelTile& tile, Major major, int instruction_mn) {
  const uint32_t base = 3 * 1024;
  std::vector<bool> seen(static_cast<size_t>(tile.bytes()));
  int count = 0;
  Operand operand = {tile, major, base, 0};
  const int per_step = k_step_elements(tile.element_bytes);
  for (; operand.first_mn < operand.mn_extent(); operand.first_mn += instruction_mn) {
    for (int step = 0; step < operand.k_steps(); ++step) {
      // Through the encoded word, as a kernel does.
      const MatrixDescriptor descriptor = decode(encode(step_descriptor(operand, step)));
      for (int mn = 0; mn < instruction_mn; ++mn) {
        for (int k = 0; k < per_step; ++k) {
          const uint32_t address = operand_address(descriptor, major, mn, k, tile.element_bytes);
          ASSERT_EQ(address, box_address(operand, operand.first_mn + mn, step * per_step + k))
              << swizzle_name(tile.swizzle) << " step " << step << " mn " << mn << " k " << k;
          if (k == 0) {
            ASSERT_EQ(address, operand_address(operand, step, mn, k));
          }
          ASSERT_FALSE(seen[address - base]);
          seen[address - base] = true;
          ++count;
        }
      }
    }
  }
  EXPECT_EQ(count, tile.rows * tile.cols);
}

TEST(Descriptor, KMajorReadsWhatTheCopyEngineWrote) {
  for (const Swizzle swizzle : kSwizzles) {
    for (const int k : {16, 64, 96}) {
      for (int n = 8; n <= 256; n += 8) check_operand({n, k, swizzle}, Major::K, n);
      check_operand({192, k, swizzle}, Major::K, 64);
    }
  }
}

TEST(Descriptor, MnMajorReadsWhatTheCopyEngineWrote) {
  for (const Swizzle swizzle : kSwizzles) {
    for (const int k : {16, 64, 80}) {
      for (int n = 8; n <= 256; n += 8) check_operand({k, n, swizzle}, Major::MN, n);
      check_operand({k, 192, swizzle}, Major::MN, 64);
    }
  }
}

TEST(Descriptor, OtherElementWidthsAreKMajor) {
  for (const Swizzle swizzle : kSwizzles) {
    for (const int element_bytes : {1, 4}) {
      for (const int k : {32, 64, 128}) {
        check_operand({64, k, swizzle, element_bytes}, Major::K, 64);
      }
    }
  }
}

TEST(DescriptorDeathTest, RefusesWhatTheHardwareCannotRead) {
  const auto refused = testing::ExitedWithCode(base::kInternalErrorStatus);
  EXPECT_EXIT(encode({8, 0, 0, 0, Swizzle::B128}), refused, "must be a multiple of 16");
  EXPECT_EXIT(encode({1 << 18, 0, 0, 0, Swizzle::B128}), refused, "below 2\\^18");
  EXPECT_EXIT(decode(uint64_t{1} << 14), refused, "unused bits");
  EXPECT_EXIT(step_descriptor({{64, 64}, Major::K, 512, 0}, 0), refused, "not a multiple of 1024");
  EXPECT_EXIT(step_descriptor({{64, 128, Swizzle::B128, 1}, Major::MN, 0, 0}, 0), refused,
              "MN-major operand of 1-byte elements");
  EXPECT_EXIT(step_descriptor({{64, 128}, Major::MN, 0, 32}, 0), refused, "steps of 64");
  EXPECT_EXIT(operand_address({0, 16, 1024, 1, Swizzle::B128}, Major::K, 0, 0), refused,
              "only 0 is modelled");
}

}  // namespace
}  // namespace nautilus::layout
