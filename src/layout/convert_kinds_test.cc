// SPDX-License-Identifier: Apache-2.0
//
// Every pair of layouts of this folder that have a shape in common: the conversion is carried out
// on numbers in its own way, and no cheaper way would work.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "layout/convert.h"
#include "layout/fragments.h"
#include "layout/line.h"
#include "layout/random_layout.h"

namespace nautilus::layout {
namespace {

struct Named {
  std::string name;
  Layout layout;
};

// Accumulators, operands, their rows and columns, with rows repeated in registers; lines of every
// width; one value.
std::vector<Named> all_layouts() {
  std::vector<Named> all;
  for (const int blocks : {1, 2, 3}) {
    const auto repeated = [&](Layout layout) {
      return blocks > 1 ? layout.repeat(0, blocks, Owner::Register) : layout;
    };
    for (const int n : {8, 16, 64, 80, 128, 256}) {
      all.push_back({fmt::format("acc({}) x {}", n, blocks), repeated(acc(n))});
      if (n % 16 == 0)
        all.push_back({fmt::format("afrag({}) x {}", n, blocks), repeated(afrag(n))});
    }
    all.push_back({fmt::format("rows x {}", blocks), drop_axis(repeated(acc(8)), 1).result});
  }
  for (const int n : {64, 80, 128, 192, 256})
    all.push_back({fmt::format("columns {}", n), drop_axis(acc(n), 0).result});
  for (const int width : {1, 2, 4, 8}) {
    for (const int n : {128, 256, 1024, 3072}) {
      if (n % (128 * width) == 0)
        all.push_back({fmt::format("line({}, {})", n, width), line(n, width)});
    }
  }
  all.push_back({"value", line_value()});
  return all;
}

template <class F>
void for_each_place(const Layout& layout, F&& f) {
  Place place;
  for (place.warp_group = 0; place.warp_group < layout.extent(Owner::WarpGroup);
       ++place.warp_group) {
    for (place.warp = 0; place.warp < layout.extent(Owner::Warp); ++place.warp) {
      for (place.lane = 0; place.lane < layout.extent(Owner::Lane); ++place.lane) {
        for (place.reg = 0; place.reg < layout.registers(); ++place.reg) f(place);
      }
    }
  }
}

// The place that a thread asks for an element, from the digits of the element's new place. Of
// copies in lanes and warps it asks the nearest ones.
Place asked(const Layout& from, const std::vector<CommonDigit>& digits, const Place& place) {
  Place at;
  for (const CommonDigit& d : digits)
    at[d.from] += place[d.to] / d.to_stride % d.extent * d.from_stride;
  for (const Digit& d : from.digits()) {
    if (d.axis == kCopies && d.owner != Owner::Register)
      at[d.owner] += place[d.owner] / d.owner_stride % d.extent * d.owner_stride;
  }
  return at;
}

bool warp_holds(const Layout& from, const std::vector<int>& at, const Place& place) {
  for (int copy = 0; copy < from.copies(); ++copy) {
    if (from.owner_of(at, copy).same_warp(place)) return true;
  }
  return false;
}

TEST(ConvertWays, EveryPairOfThisFolder) {
  const std::vector<Named> all = all_layouts();
  int count[3] = {0, 0, 0};
  for (const Named& from : all) {
    for (const Named& to : all) {
      if (from.layout.shape() != to.layout.shape()) continue;
      SCOPED_TRACE(from.name + " to " + to.name);
      const Conversion conversion = convert_kind(from.layout, to.layout);
      ++count[static_cast<int>(conversion.kind)];
      const auto digits = common_digits(from.layout, to.layout);
      ASSERT_TRUE(digits);
      // Registers are names: one for each register, whatever the thread.
      std::vector<std::set<std::optional<int>>> held(static_cast<size_t>(to.layout.registers()));
      bool in_warps = true;
      int wrong = 0;
      for_each_place(to.layout, [&](const Place& place) {
        const std::vector<int> at = to.layout.coordinates_of(place);
        held[static_cast<size_t>(place.reg)].insert(from.layout.register_of(at, place));
        in_warps = in_warps && warp_holds(from.layout, at, place);
        Place source = asked(from.layout, *digits, place);
        wrong += from.layout.coordinates_of(source) != at;
        if (conversion.kind == ConvertKind::Lanes) wrong += !source.same_warp(place);
        if (conversion.kind != ConvertKind::Free) return;
        source = place;
        source.reg = conversion.source[static_cast<size_t>(place.reg)];
        wrong += from.layout.coordinates_of(source) != at;
      });
      EXPECT_EQ(wrong, 0);
      const bool in_threads = std::all_of(held.begin(), held.end(), [](const auto& registers) {
        return registers.size() == 1 && registers.begin()->has_value();
      });
      EXPECT_EQ(conversion.kind, in_threads ? ConvertKind::Free
                                 : in_warps ? ConvertKind::Lanes
                                            : ConvertKind::Shared);
    }
  }
  EXPECT_GT(count[0], 20);
  EXPECT_GT(count[1], 5);
  EXPECT_GT(count[2], 20);
}

TEST(ConvertWays, ColumnsToRowsDigitByDigit) {
  const Layout columns = drop_axis(acc(64), 0).result;
  // row = 16 * warp + 8 * h + g; column = 8 * j + 2 * t + c.
  EXPECT_EQ(common_digits(columns, row_stats()),
            (std::vector<CommonDigit>{{2, Owner::Lane, 4, Owner::Register, 1},
                                      {4, Owner::Lane, 8, Owner::Lane, 1},
                                      {2, Owner::Register, 1, Owner::Register, 2},
                                      {4, Owner::Warp, 1, Owner::Register, 4}}));
  EXPECT_EQ(convert_kind(columns, row_stats()).kind, ConvertKind::Lanes);
  EXPECT_EQ(convert_kind(row_stats(), columns).kind, ConvertKind::Shared);
}

// Digits that straddle each other go through shared memory, even within a warp; renumbered
// registers are names all the same.
TEST(ConvertWays, StraddlingDigits) {
  const auto parsed = [](std::string_view text) {
    std::string error;
    const auto layout = parse_layout(text, &error);
    EXPECT_TRUE(layout) << error;
    return layout.value_or(Layout());
  };
  const Layout by_ten = parsed("0: reg 4*10, reg 10*1@4");
  const Layout by_four = parsed("0: reg 10*4, reg 4*1@10");
  EXPECT_FALSE(common_digits(by_ten, by_four));
  EXPECT_EQ(convert_kind(by_ten, by_four).kind, ConvertKind::Free);
  const Layout lanes_last = parsed("0: reg 10*4, lane 4*1");
  EXPECT_EQ(convert_kind(parsed("0: lane 4*10, reg 10*1"), lanes_last).kind, ConvertKind::Shared);
  EXPECT_EQ(convert_kind(parsed("0: lane 4*1, reg 10*4"), lanes_last).kind, ConvertKind::Free);
}

// On random pairs with common digits, the digits name the element's old place.
TEST(ConvertWays, CommonDigitsOfRandomLayouts) {
  base::Random random(11);
  int found = 0;
  for (int round = 0; round < 3000; ++round) {
    const Layout from = random_layout(random, 1, true);
    const Layout to = random_layout(random, 1, true);
    if (from.shape() != to.shape()) continue;
    const auto digits = common_digits(from, to);
    if (!digits) continue;
    ++found;
    for_each_place(to, [&](const Place& place) {
      Place source;
      for (const CommonDigit& d : *digits)
        source[d.from] += place[d.to] / d.to_stride % d.extent * d.from_stride;
      EXPECT_EQ(from.coordinates_of(source), to.coordinates_of(place));
    });
  }
  EXPECT_GT(found, 30);
}

}  // namespace
}  // namespace nautilus::layout
