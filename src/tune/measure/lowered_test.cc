// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/lowered.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"

namespace nautilus::tune {
namespace {

Subject subject(const std::string& file, std::map<std::string, int64_t> sizes) {
  Subject out;
  std::string error;
  out.path = fmt::format("{}/{}", NAUTILUS_SOURCE_DIR, file);
  out.text = base::read_file(out.path, &error).value_or("");
  out.sizes = std::move(sizes);
  return out;
}

double feature(const Lowered& l, std::string_view name) {
  for (size_t k = 0; k < feature_names().size(); ++k) {
    if (feature_names()[k] == name) return l.features.at(k);
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(Lowered, CountsWhatAKernelDoes) {
  const double m = 4096, n = 2048, k = 1024;
  const Lowered l =
      lower(subject("golden/gemm_nt.naut", {{"M", 4096}, {"N", 2048}, {"K", 1024}}), "");
  ASSERT_TRUE(l.refusal.empty()) << l.refusal;
  EXPECT_NEAR(feature(l, "products"), std::log2(1 + m * n * k), 1e-6);
  // Every result once; every operand at least once.
  EXPECT_GT(std::exp2(feature(l, "copied")), 2 * (m * n + m * k + n * k));
  EXPECT_NEAR(feature(l, "stored"), std::log2(1 + 2 * m * n), 1e-6);
  EXPECT_GT(feature(l, "slots"), 1);
  ASSERT_EQ(l.running.size(), 1u);
  EXPECT_EQ(l.running[0].first, "C.sum");
}

TEST(Lowered, HalfOfTheScoresAreMasked) {
  const std::map<std::string, int64_t> sizes = {
      {"B", 1}, {"Hk", 8}, {"G", 1}, {"M", 8192}, {"N", 8192}};
  const Lowered full = lower(subject("golden/attention_full.naut", sizes), "");
  const Lowered causal = lower(subject("golden/attention_causal.naut", sizes), "");
  const double ratio = std::exp2(feature(causal, "products") - feature(full, "products"));
  EXPECT_GT(ratio, 0.45);
  EXPECT_LT(ratio, 0.60);
}

// Sizes with a split streamed axis: some of its parts are empty.
TEST(Lowered, PartsHaveFeatures) {
  for (const auto& [file, sizes] :
       std::vector<std::pair<std::string, std::map<std::string, int64_t>>>{
           {"golden/gemm_nt.naut", {{"M", 512}, {"N", 512}, {"K", 8192}}},
           {"examples/attention_decode.naut",
            {{"B", 1}, {"Hk", 2}, {"G", 16}, {"D", 128}, {"N", 16384}}},
           {"examples/rmsnorm.naut", {{"M", 100}, {"K", 5000}}},
           {"examples/argmax_row.naut", {}}}) {
    const Lowered l = lower(subject(file, sizes), "");
    EXPECT_TRUE(l.refusal.empty()) << file << ": " << l.refusal;
    EXPECT_EQ(l.features.size(), feature_names().size());
    for (const double f : l.features) EXPECT_TRUE(std::isfinite(f)) << file;
    EXPECT_FALSE(l.kernels.empty());
  }
}

TEST(Lowered, ALineOfJsonHasAllOfIt) {
  const Lowered l = lower(subject("examples/softmax.naut", {}), "");
  const auto again = lowered_of_json(to_json(l));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->schedule, l.schedule);
  EXPECT_EQ(again->kernels, l.kernels);
  EXPECT_EQ(again->running, l.running);
  EXPECT_EQ(again->features.size(), l.features.size());
  EXPECT_FALSE(lowered_of_json("[]"));
  EXPECT_FALSE(lowered_of_json("{\"schedule\": \"\"}"));
}

TEST(Lowered, ARefusalSaysWhy) {
  const Lowered l = lower(subject("examples/softmax.naut", {}), "no schedule");
  EXPECT_TRUE(l.schedule.empty());
  EXPECT_FALSE(l.refusal.empty());
}

}  // namespace
}  // namespace nautilus::tune
