// SPDX-License-Identifier: Apache-2.0
#include "tune/report/chart.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nautilus::tune {
namespace {

using Values = std::vector<double>;

Values rounded(Values values) {
  for (double& v : values) v = std::round(v * 1e6) / 1e6;
  return values;
}

TEST(Chart, ScalesPlaceValues) {
  const Scale linear = Scale::linear(10, 20, 100, 0);
  EXPECT_DOUBLE_EQ(linear(15), 50);
  EXPECT_DOUBLE_EQ(linear(30), 0);  // at the end
  const Scale logarithmic = Scale::logarithmic(1, 100, 0, 200);
  EXPECT_DOUBLE_EQ(logarithmic(10), 100);
  EXPECT_DOUBLE_EQ(logarithmic(0), 0);
}

TEST(Chart, ScalesAreLogarithmicWhereValuesDifferMuch) {
  EXPECT_FALSE(Scale::around({10, 12}, 0.1, 0, 1).is_logarithmic());
  EXPECT_TRUE(Scale::around({10, 120}, 0.1, 0, 1).is_logarithmic());
  EXPECT_FALSE(Scale::around({0, 120}, 0.1, 0, 1).is_logarithmic());
  // One value, and none, still make an axis.
  const Scale one = Scale::around({7, 7}, 0.1, 0, 100);
  EXPECT_LT(one.low(), one.high());
  EXPECT_DOUBLE_EQ(one(7), 50);
  EXPECT_GE(one.ticks(6).size(), 2u);
  EXPECT_LT(Scale::around({}, 0.1, 0, 1).low(), Scale::around({}, 0.1, 0, 1).high());
  EXPECT_LT(Scale::around({0}, 0.1, 0, 1).low(), Scale::around({0}, 0.1, 0, 1).high());
}

TEST(Chart, TicksAreRound) {
  EXPECT_EQ(rounded(Scale::linear(0.5, 40.5, 0, 1).ticks(9)),
            (Values{5, 10, 15, 20, 25, 30, 35, 40}));
  EXPECT_EQ(rounded(Scale::linear(0.29, 0.52, 0, 1).ticks(6)), (Values{0.3, 0.35, 0.4, 0.45, 0.5}));
  EXPECT_EQ(rounded(Scale::logarithmic(0.9, 60, 0, 1).ticks(7)), (Values{1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(rounded(Scale::logarithmic(0.5, 2e4, 0, 1).ticks(7)),
            (Values{1, 10, 100, 1000, 10000}));
  EXPECT_EQ(rounded(Scale::logarithmic(21, 47, 0, 1).ticks(7)), (Values{25, 30, 35, 40, 45}));
  for (const double high : {1.01, 1.5, 7.0, 81.0, 3e3, 1e9}) {
    for (const bool is_logarithmic : {false, true}) {
      const Scale s =
          is_logarithmic ? Scale::logarithmic(1, high, 0, 1) : Scale::linear(1, high, 0, 1);
      const Values ticks = s.ticks(7);
      EXPECT_GE(ticks.size(), 2u) << high;
      EXPECT_LE(ticks.size(), 7u) << high;
      for (const double t : ticks) EXPECT_TRUE(t > 1 - 1e-6 && t < high * (1 + 1e-6)) << t;
    }
  }
}

TEST(Chart, TextOfTicksHasNoNoise) {
  EXPECT_EQ(tick_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(1200), "1,200");
  EXPECT_EQ(tick_text(0.35), "0.35");
  EXPECT_EQ(tick_text(1000), "1,000");
}

TEST(Chart, LabelsDoNotOverlap) {
  EXPECT_EQ(spread({50, 52, 90}, 10, 0, 100), (Values{50, 60, 90}));
  EXPECT_EQ(spread({99, 98}, 10, 0, 100), (Values{100, 90}));  // in their order
  EXPECT_EQ(spread({-5}, 10, 0, 100), (Values{0}));
  EXPECT_EQ(spread({}, 10, 0, 100), Values{});
}

TEST(Chart, ShapesHaveTitles) {
  Drawing drawing(10, 20);
  drawing.dot({1, 2}, 3, "dot", "a < b");
  drawing.text({1, 2}, Anchor::End, "label", "x & y", -45);
  const std::string svg = drawing.svg("\"what\"");
  EXPECT_NE(svg.find("<title>a &lt; b</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("x &amp; y"), std::string::npos) << svg;
  EXPECT_NE(svg.find("rotate(-45.0 1.0 2.0)"), std::string::npos) << svg;
  EXPECT_NE(svg.find("aria-label=\"&quot;what&quot;\""), std::string::npos) << svg;
}

}  // namespace
}  // namespace nautilus::tune
