// SPDX-License-Identifier: Apache-2.0
//
// The example of the header comment, and properties of random layouts: the maps are inverse to each
// other, the canonical form does not change the map, and text round-trips.
#include "layout/digits.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "layout/random_layout.h"
#include "layout/register_table.h"

namespace nautilus::layout {
namespace {

Layout parsed(std::string_view text) {
  std::string error;
  const std::optional<Layout> layout = parse_layout(text, &error);
  EXPECT_TRUE(layout) << text << ": " << error;
  return layout.value_or(Layout());
}

std::string error_of(std::string_view text) {
  std::string error;
  EXPECT_FALSE(parse_layout(text, &error)) << text;
  return error;
}

// Calls visit(coordinates) for every element.
template <typename Visit>
void for_each_element(const Layout& layout, Visit&& visit) {
  std::vector<int> at(layout.shape().size(), 0);
  for (int64_t i = 0; i < layout.elements(); ++i) {
    int64_t rest = i;
    for (size_t axis = at.size(); axis-- > 0;) {
      at[axis] = static_cast<int>(rest % layout.shape()[axis]);
      rest /= layout.shape()[axis];
    }
    visit(at);
  }
}

// The whole map, element to its set of places.
using Table = std::map<std::vector<int>, std::set<Place>>;
Table table_of(const Layout& layout) {
  Table table;
  for_each_element(layout, [&](const std::vector<int>& at) {
    for (int copy = 0; copy < layout.copies(); ++copy) {
      table[at].insert(layout.owner_of(at, copy));
    }
  });
  return table;
}

TEST(Digits, WorkedExample) {
  const Layout acc16 =
      parsed("0: warp 4*16, reg 2*8@2, lane 8*1@4; 1: reg 2*8@4, lane 4*2, reg 2*1");
  EXPECT_EQ(acc16.shape(), (std::vector<int>{64, 16}));
  EXPECT_EQ(acc16.owner_of({27, 13}), (Place{0, 1, 14, 7}));
  EXPECT_EQ(acc16.coordinates_of({0, 1, 14, 7}), (std::vector<int>{27, 13}));
  EXPECT_EQ(acc16.registers(), 8);
  EXPECT_EQ(acc16.threads(), 128);
  EXPECT_TRUE(acc16.is_bijective());
}

TEST(Digits, ExtentsNeedNotBePowersOfTwo) {
  const Layout layout = parsed("0: reg 10*8@4, lane 4*2, reg 2*1; 1: reg 2*1@2");
  EXPECT_EQ(layout.shape(), (std::vector<int>{80, 2}));
  EXPECT_EQ(layout.registers(), 40);
  EXPECT_EQ(layout.owner_of({79, 1}), (Place{0, 0, 3, 39}));
}

TEST(Digits, CopiesAreHeldByEveryLane) {
  const Layout row = parsed("0: warp 4*16, reg 2*8, lane 8*1@4; copies: lane 4");
  EXPECT_EQ(row.copies(), 4);
  EXPECT_FALSE(row.is_bijective());
  for (int copy = 0; copy < 4; ++copy) {
    EXPECT_EQ(row.owner_of({21}, copy), (Place{0, 1, 20 + copy, 0}));
  }
  const std::vector<int> at = {21};
  EXPECT_EQ(row.register_of(at, {0, 1, 23, 0}), 0);
  EXPECT_EQ(row.register_of(at, {0, 1, 24, 0}), std::nullopt);
  EXPECT_EQ(row.register_of(at, {0, 2, 23, 0}), std::nullopt);
}

TEST(Digits, CanonicalFormMergesAndDrops) {
  EXPECT_EQ(to_text(parsed("0: reg 3*4@4, reg 2*2@2, reg 2*1, lane 1*7@9")), "0: reg 12*1");
  EXPECT_EQ(to_text(parsed("0: lane 8*1@4, warp 4*8; copies: lane 2@2, lane 2")),
            "0: warp 4*8, lane 8*1@4; copies: lane 4");
  // Neighbours in the axis but not in the owner, and the other way round.
  EXPECT_EQ(to_text(parsed("0: reg 2*2, reg 2*1@2")), "0: reg 2*2, reg 2*1@2");
  EXPECT_EQ(to_text(parsed("0: reg 2*1; 1: reg 2*1@2")), "0: reg 2*1; 1: reg 2*1@2");
}

TEST(Digits, ScalarsAndEmptyAxes) {
  EXPECT_EQ(to_text(Layout()), "scalar");
  EXPECT_EQ(parsed("scalar"), Layout());
  EXPECT_EQ(to_text(parsed("scalar; copies: lane 32")), "scalar; copies: lane 32");
  EXPECT_EQ(to_text(parsed("0: -; 1: lane 32*1")), "0: -; 1: lane 32*1");
  EXPECT_EQ(parsed("0: -; 1: lane 32*1").shape(), (std::vector<int>{1, 32}));
}

TEST(Digits, Repeat) {
  const Layout warp = parsed("0: lane 8*1@4; 1: lane 4*2, reg 2*1");
  EXPECT_EQ(to_text(warp.repeat(0, 4, Owner::Warp).repeat(0, 2, Owner::WarpGroup)),
            "0: group 2*32, warp 4*8, lane 8*1@4; 1: lane 4*2, reg 2*1");
  EXPECT_EQ(to_text(warp.repeat(1, 10, Owner::Register)),
            "0: lane 8*1@4; 1: reg 10*8@2, lane 4*2, reg 2*1");
}

TEST(Digits, TextErrors) {
  EXPECT_EQ(error_of(""), "column 1: expected axis 0 or 'copies'");
  EXPECT_EQ(error_of("1: -"), "column 2: expected axis 0 or 'copies'");
  EXPECT_EQ(error_of("0 lane"), "column 3: expected ':'");
  EXPECT_EQ(error_of("0: thread 2"), "column 4: expected an owner (group, warp, lane or reg)");
  EXPECT_EQ(error_of("0: lane x"), "column 9: expected an extent");
  EXPECT_EQ(error_of("0: lane 2"), "column 10: expected '*' and the stride in the axis");
  EXPECT_EQ(error_of("0: lane 2*"), "column 11: expected the stride in the axis");
  EXPECT_EQ(error_of("0: lane 2*1@"), "column 13: expected the stride in the owner");
  EXPECT_EQ(error_of("0: lane 2*1; "), "column 14: expected axis 1 or 'copies'");
  EXPECT_EQ(error_of("0: lane 2*1 reg"), "column 13: expected the end of the layout");
  EXPECT_EQ(error_of("0: -; copies: -"), "column 15: expected an owner (group, warp, lane or reg)");
  EXPECT_EQ(error_of("copies: lane 2"), "column 7: expected 'scalar' or an axis first");
  EXPECT_EQ(error_of("scalar; 0: -"), "column 9: expected 'copies'");
}

TEST(Digits, Flaws) {
  EXPECT_EQ(error_of("0: lane 0*1"), "a digit has extent 0");
  EXPECT_EQ(error_of("0: lane 2*2"), "the strides of axis 0 do not make a mixed-radix number");
  EXPECT_EQ(error_of("0: lane 2*1, reg 2*1"),
            "the strides of axis 0 do not make a mixed-radix number");
  EXPECT_EQ(error_of("0: lane 2*1@2"),
            "the owner strides of lane do not make a mixed-radix number");
  EXPECT_EQ(error_of("0: reg 2*1; 1: reg 2*1"),
            "the owner strides of reg do not make a mixed-radix number");
  EXPECT_EQ(error_of("0: lane 64*1"), "64 lanes in a warp, it has 32");
  EXPECT_EQ(error_of("0: warp 8*1"), "8 warps in a warp group, it has 4");
  EXPECT_EQ(error_of("0: group 9*1"), "9 warp groups, a block of threads has at most 8");
  EXPECT_EQ(error_of("0: reg 2000000000*1"),
            "the strides of axis 0 do not make a mixed-radix number");
  const Digit elsewhere = {.axis = 2, .extent = 2};
  EXPECT_EQ(Layout::flaw(2, {&elsewhere, 1}), "a digit has axis 2, the rank is 2");
}

TEST(Digits, RandomLayoutsAreBijections) {
  base::Random random(1);
  for (int round = 0; round < 300; ++round) {
    const Layout layout = random_layout(random, static_cast<int>(random.integer(0, 3)), true);
    SCOPED_TRACE(to_text(layout));
    int64_t places = 1;
    for (const Owner owner : kOwners) places *= layout.extent(owner);
    EXPECT_EQ(places, layout.elements() * layout.copies());
    std::set<Place> seen;
    for_each_element(layout, [&](const std::vector<int>& at) {
      for (int copy = 0; copy < layout.copies(); ++copy) {
        const Place place = layout.owner_of(at, copy);
        EXPECT_TRUE(seen.insert(place).second);
        EXPECT_EQ(layout.coordinates_of(place), at);
        EXPECT_TRUE(layout.register_of(at, place).has_value());
      }
    });
    EXPECT_EQ(static_cast<int64_t>(seen.size()), places);
  }
}

// Against a direct evaluation of the digits as they were before canonicalisation.
TEST(RegisterTable, AnswersAsTheLayoutDoes) {
  base::Random random(7);
  for (int round = 0; round < 100; ++round) {
    const Layout layout = random_layout(random, 2, true);
    const RegisterTable table(layout);
    for (int k = 0; k < 200; ++k) {
      const std::vector<int> at = {static_cast<int>(random.integer(0, layout.shape()[0] - 1)),
                                   static_cast<int>(random.integer(0, layout.shape()[1] - 1))};
      const Place thread{static_cast<int>(random.integer(0, 2)),
                         static_cast<int>(random.integer(0, 4)),
                         static_cast<int>(random.integer(0, 32)), 0};
      EXPECT_EQ(table.register_of(at, thread), layout.register_of(at, thread)) << to_text(layout);
    }
  }
}

TEST(Digits, CanonicalFormKeepsTheMap) {
  base::Random random(2);
  for (int round = 0; round < 300; ++round) {
    const RandomDigits made = random_digits(random, static_cast<int>(random.integer(1, 3)), false);
    const Layout layout(made.rank, made.digits);
    SCOPED_TRACE(to_text(layout));
    for_each_element(layout, [&](const std::vector<int>& at) {
      Place expected;
      for (const Digit& digit : made.digits) {
        const int coordinate = at[static_cast<size_t>(digit.axis)];
        expected[digit.owner] += coordinate / digit.stride % digit.extent * digit.owner_stride;
      }
      EXPECT_EQ(layout.owner_of(at), expected);
    });
  }
}

TEST(Digits, EqualExactlyIfTheMapsAre) {
  base::Random random(3);
  // Few small layouts, so that equal maps from different digits occur.
  std::map<std::string, std::pair<Layout, Table>> by_text;
  for (int round = 0; round < 400; ++round) {
    const Layout layout = random_layout(random, 1, true);
    if (layout.elements() * layout.copies() > 24) continue;
    by_text.emplace(to_text(layout), std::pair(layout, table_of(layout)));
  }
  ASSERT_GT(by_text.size(), 20u);
  for (const auto& [text_a, a] : by_text) {
    for (const auto& [text_b, b] : by_text) {
      EXPECT_EQ(a.first == b.first, a.second == b.second) << text_a << " / " << text_b;
    }
  }
}

TEST(Digits, TextRoundTrips) {
  base::Random random(4);
  for (int round = 0; round < 2000; ++round) {
    const Layout layout = random_layout(random, static_cast<int>(random.integer(0, 4)), true);
    const std::string text = to_text(layout);
    EXPECT_EQ(parsed(text), layout) << text;
    EXPECT_EQ(to_text(parsed(text)), text);
  }
}

}  // namespace
}  // namespace nautilus::layout
