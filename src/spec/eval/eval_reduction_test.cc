// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval_reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace nautilus::spec {
namespace {

using expr::float_value;
using expr::kInf;

// Of elements with bounds, the position that the reduction finds and how far it may be off.
expr::Bounded least_position(const std::vector<expr::Bounded>& elements) {
  expr::ExprPool pool;
  const expr::Expr axis = pool.index("i");
  const expr::Expr axes[] = {axis};
  const auto length = static_cast<int64_t>(elements.size());
  const expr::Expr extents[] = {pool.integer(length)};
  const expr::Expr body = pool.read(pool.name("V"), expr::DType::F32, axes);
  const Reduction reduction(pool.reduce(expr::Reducer::ArgMin, body, axes, extents, {}), length,
                            false);
  Accumulator acc = reduction.start({float_value(kInf), 0});
  acc.position = -1;
  for (size_t k = 0; k < elements.size(); ++k)
    reduction.add(acc, elements[k], static_cast<int64_t>(k));
  return reduction.finish(acc);
}

TEST(EvalReduction, APositionIsUncertainIfAnElementWithoutBoundMayBeTheBest) {
  const expr::Bounded one{float_value(1), 0};
  const expr::Bounded infinity{float_value(kInf), 0};
  EXPECT_EQ(least_position({infinity, one, infinity}).v.i, 1);
  EXPECT_EQ(least_position({infinity, one, infinity}).e, 0);
  // An uncertain infinity, before the best one and after it.
  const expr::Bounded any{float_value(kInf), kInf};
  EXPECT_EQ(least_position({any, one, infinity}).e, kInf);
  EXPECT_EQ(least_position({infinity, one, any}).e, kInf);
  // An element that is certainly NaN does not count.
  EXPECT_EQ(least_position({{float_value(std::nan("")), 0}, one}).e, 0);
  EXPECT_EQ(least_position({{float_value(std::nan("")), kInf}, one}).e, kInf);
}

}  // namespace
}  // namespace nautilus::spec
