// SPDX-License-Identifier: Apache-2.0
#include "tune/records/trial_names.h"

#include <gtest/gtest.h>

#include "driver/kernels/scheduling.h"

namespace nautilus::tune {
namespace {

// Rows and columns have exchanged names: sizes of trials are those of the same places.
TEST(TrialNames, SizesFollowTheirPlaces) {
  driver::Unit unit;
  const auto tuned = driver::load_text(
      "a.naut", "dims M, N\nX: f32[M, N]\nY[i] = sum[j] X[i,j] -> f32\n", {}, unit);
  const auto other = driver::load_text(
      "b.naut", "dims M, N\nZ: f32[N, M]\nW[a] = sum[b] Z[a,b] -> f32\n", {}, unit);
  ASSERT_TRUE(tuned && other);
  const auto first = driver::first_schedule(*tuned, unit);
  ASSERT_TRUE(first);
  Trial trial;
  trial.problem.sizes = {{"M", 4}, {"N", 900}};
  trial.schedule = schedule::print(first->decisions);
  const auto sizes = [&](const ir::Program& program, const Trial& t) {
    return with_names_of(program, {t})[0].problem.sizes;
  };
  EXPECT_EQ(sizes(*tuned, trial), trial.problem.sizes);
  EXPECT_EQ(sizes(*other, trial), (std::map<std::string, int64_t>{{"N", 4}, {"M", 900}}));
  // A schedule without places has the names of the program.
  trial.schedule = "schedule @a version 2 equations 00\n";
  EXPECT_EQ(sizes(*other, trial), trial.problem.sizes);
}

}  // namespace
}  // namespace nautilus::tune
