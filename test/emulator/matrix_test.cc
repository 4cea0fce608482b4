// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "emulator/half.h"
#include "test/emulator/product_kernel.h"

namespace nautilus::emulator {
namespace {

const CompiledBody& product_body() {
  static const std::unique_ptr<CompiledBody> body = compile_for_test(std::string(kProduct));
  return *body;
}

TEST(EmulatedMatrix, EveryPlaceOfOperandsIsExact) {
  for (const layout::Swizzle swizzle :
       {layout::Swizzle::None, layout::Swizzle::B32, layout::Swizzle::B64, layout::Swizzle::B128}) {
    for (const char* variant :
         {"Right_0_0", "Right_0_1", "Right_1_0", "Right_1_1", "Half_0_0", "Half_0_1"}) {
      const ProductResult result = run_product(product_body(), variant, swizzle, 1);
      EXPECT_EQ(result.report, "");
      EXPECT_EQ(result.wrong, 0) << variant << " " << layout::swizzle_name(swizzle);
    }
  }
}

// What some seed of a few reports first, or "wrong" for wrong results without a report.
std::string first_finding(const std::string& variant) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const ProductResult result = run_product(product_body(), variant, layout::Swizzle::B128, seed);
    if (!result.report.empty()) return result.report;
    if (result.wrong > 0) return "wrong";
  }
  return "nothing";
}

void expect_finding(const std::string& variant, const std::string& part) {
  const std::string finding = first_finding(variant);
  EXPECT_NE(finding.find(part), std::string::npos) << variant << ": " << finding;
}

TEST(EmulatedMatrix, EveryCommitGroupBeginsWithAFence) {
  expect_finding("NoFence_0_0", "wgmma without a wgmma_fence since the last commit");
  expect_finding("NoFence_0_0", "else if (!REGISTERS && k == 0) wgmma_bf16_n128<INIT, TRANS_B>(C");
}

TEST(EmulatedMatrix, AWaitCoversOnlyWhatWasCommitted) {
  expect_finding("NoCommit_0_0", "the wait names registers of products that it does not cover");
}

TEST(EmulatedMatrix, AccumulatorsAreNotNumbersBeforeTheirWait) {
  expect_finding("NoName_0_0", "wrong");
  expect_finding("NoWait_0_0", "the kernel ends with a wgmma group that was not waited for");
}

TEST(EmulatedMatrix, RegistersInFlightMustNotBeWritten) {
  expect_finding("WriteA_1_0", "A registers of this wgmma changed before the wait");
  expect_finding("WriteC_0_0", "accumulator registers were written before the wait");
  expect_finding("BadRegister_1_0", "wgmma with A registers 13..16 of an array of 16");
}

TEST(EmulatedMatrix, OperandsMustHaveArrived) {
  expect_finding("NoMbarWait_0_0", "wgmma reads smem+");
  expect_finding("NoExpect_0_0", "24576 bytes not announced");
}

TEST(EmulatedMatrix, OrdinaryWritesMustBeFenced) {
  expect_finding("LateStore_0_0", "without a fence_async since");
}

TEST(EmulatedMatrix, BarriersMustBeInitialisedAndSeen) {
  expect_finding("NoInit_0_0", "is used but was never initialised");
  expect_finding("NoInitFence_0_0", "is used before mbar_init_fence");
  expect_finding("NoInitSync_0_0", "initialis");
}

TEST(EmulatedMatrix, DescriptorsAreCheckedBitByBit) {
  expect_finding("BadDescriptor_0_0", "has bits set outside its fields");
}

TEST(EmulatedMatrix, WarpGroupsStayTogether) {
  expect_finding("Diverge_0_0", "warp group 0 diverges");
}

TEST(Half, AllValuesSurvive) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_value(static_cast<uint16_t>(bits));
    const bool is_nan = (bits & 0x7fffu) > 0x7c00u;
    EXPECT_EQ(f16_bits(value), is_nan ? 0x7fffu : bits);
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(f16_bits(1.f + 0x1p-11f), 0x3c00);             // tie, down to even
  EXPECT_EQ(f16_bits(1.f + 3 * 0x1p-11f), 0x3c02);         // tie, up to even
  EXPECT_EQ(f16_bits(1.f + 0x1p-11f + 0x1p-20f), 0x3c01);  // above the tie
  EXPECT_EQ(f16_bits(65519.f), 0x7bff);
  EXPECT_EQ(f16_bits(65520.f), 0x7c00);
  EXPECT_EQ(f16_bits(0x1p-25f), 0);
  EXPECT_EQ(f16_bits(0x1.8p-25f), 1);
  EXPECT_EQ(f16_bits(-0x1p-24f), 0x8001);
}

}  // namespace
}  // namespace nautilus::emulator
