// SPDX-License-Identifier: Apache-2.0
#include "driver/run/bench.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "driver/run/clock_sampler.h"

namespace nautilus::driver {
namespace {

// So that a device may repeat what was uploaded.
TEST(Bench, RandomBytesRepeatAfterAPeriod) {
  RandomBytes random(1);
  const size_t period = RandomBytes::period(expr::DType::BF16);
  std::vector<unsigned char> bytes(period + 4098);
  random.fill(expr::DType::BF16, 3, bytes.data(), bytes.size());
  EXPECT_TRUE(
      std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(period), bytes.end(), bytes.begin()));
  EXPECT_FALSE(std::equal(bytes.begin() + 4096, bytes.end(), bytes.begin()));
}

TEST(Bench, RandomBytesHaveNoZeros) {
  RandomBytes random(1);
  std::vector<unsigned char> a(9000000);
  std::vector<unsigned char> b(a.size());
  random.fill(expr::DType::BF16, 0, a.data(), a.size());
  random.fill(expr::DType::BF16, 1, b.data(), b.size());
  EXPECT_NE(a, b);
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < a.size(); i += 2) {
    const double x = expr::decode(expr::DType::BF16, static_cast<uint64_t>(a[i] | a[i + 1] << 8));
    ASSERT_NE(x, 0);
    sum += x;
    squares += x * x;
  }
  const double n = static_cast<double>(a.size() / 2);
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.01);
}

TEST(Bench, QuartilesInterpolate) {
  const Quartiles q = quartiles({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(q.median, 2.5);
  EXPECT_DOUBLE_EQ(q.low, 1.75);
  EXPECT_DOUBLE_EQ(q.high, 3.25);
}

TEST(Bench, ClockLines) {
  const auto sample = ClockSampler::parse("1755, 540.21");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->mhz, 1755);
  EXPECT_EQ(sample->watts, 540.21);
  EXPECT_EQ(sample->celsius, 0);
  EXPECT_EQ(ClockSampler::parse("1755, 540.21, 62")->celsius, 62);
  EXPECT_EQ(ClockSampler::parse("1755, 540.21, [N/A]")->celsius, 0);
  EXPECT_FALSE(ClockSampler::parse("[N/A], 1"));
  EXPECT_FALSE(ClockSampler::parse("1755"));
}

TEST(Bench, ThePlanHasACost) {
  const std::string path = NAUTILUS_SOURCE_DIR "/golden/gemm_pp_128x192.matile";
  std::string error;
  Unit unit;
  const auto program = load_text(path, base::read_file(path, &error).value_or(""), {}, unit);
  ASSERT_TRUE(program);
  const auto cost = plan_cost(*program, {}, unit.pool, &error);
  ASSERT_TRUE(cost) << error;
  EXPECT_GT(cost->evaluate_us.median, 0);
}

}  // namespace
}  // namespace nautilus::driver
