// SPDX-License-Identifier: Apache-2.0
//
// Conversions of each kind, and reductions carried out on numbers: the parts that drop_axis names
// must add up to the sum along the axis, in the place the result layout says.
#include "layout/convert.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "layout/fragments.h"
#include "layout/random_layout.h"

namespace nautilus::layout {
namespace {

Layout parsed(std::string_view text) {
  std::string error;
  const std::optional<Layout> layout = parse_layout(text, &error);
  EXPECT_TRUE(layout) << text << ": " << error;
  return layout.value_or(Layout());
}

std::vector<Place> places_of(const Layout& layout) {
  std::vector<Place> places;
  Place place;
  for (place.warp_group = 0; place.warp_group < layout.extent(Owner::WarpGroup);
       ++place.warp_group) {
    for (place.warp = 0; place.warp < layout.extent(Owner::Warp); ++place.warp) {
      for (place.lane = 0; place.lane < layout.extent(Owner::Lane); ++place.lane) {
        for (place.reg = 0; place.reg < layout.registers(); ++place.reg) places.push_back(place);
      }
    }
  }
  return places;
}

TEST(Convert, RenumberedRegistersAreFree) {
  const Layout a = parsed("0: lane 32*1; 1: reg 3*2@2, reg 2*1");
  const Layout b = parsed("0: lane 32*1; 1: reg 3*2, reg 2*1@3");
  const Conversion conversion = convert_kind(a, b);
  EXPECT_EQ(conversion.kind, ConvertKind::Free);
  // Register r of b is column 2 * (r % 3) + r / 3, which a has in the register of that number.
  EXPECT_EQ(conversion.source, (std::vector<int>{0, 2, 4, 1, 3, 5}));
}

TEST(Convert, LanesAndShared) {
  const Layout rows = parsed("0: warp 4*8, lane 8*1; 1: lane 4*1@8");
  const Layout columns = parsed("0: warp 4*8, lane 8*1@4; 1: lane 4*1");
  EXPECT_EQ(convert_kind(rows, columns).kind, ConvertKind::Lanes);
  const Layout transposed = parsed("0: warp 4*1, lane 8*4; 1: lane 4*1@8");
  EXPECT_EQ(convert_kind(rows, transposed).kind, ConvertKind::Shared);
  EXPECT_EQ(convert_kind_name(ConvertKind::Free), "free");
  EXPECT_EQ(convert_kind_name(ConvertKind::Lanes), "lanes");
  EXPECT_EQ(convert_kind_name(ConvertKind::Shared), "shared");
}

TEST(Convert, CopiesMayBeDroppedFreelyButNotMade) {
  const Layout copied = parsed("0: lane 8*1@4; copies: lane 4");
  const Layout single = parsed("0: lane 8*1");
  EXPECT_EQ(convert_kind(single, copied).kind, ConvertKind::Lanes);
  EXPECT_EQ(convert_kind(copied, single).kind, ConvertKind::Lanes);
  const Layout doubled = parsed("0: lane 8*1; copies: reg 2");
  EXPECT_EQ(convert_kind(doubled, single), (Conversion{ConvertKind::Free, {0}}));
  EXPECT_EQ(convert_kind(single, doubled), (Conversion{ConvertKind::Free, {0, 0}}));
  const Layout everywhere = parsed("0: lane 8*1; copies: warp 4");
  EXPECT_EQ(convert_kind(everywhere, single), (Conversion{ConvertKind::Free, {0}}));
  EXPECT_EQ(convert_kind(single, everywhere).kind, ConvertKind::Shared);
}

TEST(Convert, EveryLayoutConvertsFreelyToItself) {
  base::Random random(1);
  for (int round = 0; round < 100; ++round) {
    const Layout layout = random_layout(random, 2, false);
    const Conversion conversion = convert_kind(layout, layout);
    EXPECT_EQ(conversion.kind, ConvertKind::Free) << to_text(layout);
    for (size_t r = 0; r < conversion.source.size(); ++r) {
      EXPECT_EQ(conversion.source[r], static_cast<int>(r));
    }
  }
}

// A layout's digits with the owner strides dealt anew.
Layout dealt_anew(const Layout& layout, base::Random& random) {
  std::vector<Digit> digits = layout.digits();
  const bool exchange_owners = random.chance(0.5);
  for (Digit& digit : digits) {
    if (exchange_owners && digit.extent == 2 && random.chance(0.5)) digit.owner = Owner::Register;
  }
  for (size_t i = digits.size(); i > 1; --i) {
    const auto j = static_cast<size_t>(random.integer(0, static_cast<int>(i) - 1));
    if (random.chance(0.3)) std::swap(digits[i - 1], digits[j]);
  }
  std::map<Owner, int> next;
  for (Digit& digit : digits) {
    int& stride = next.try_emplace(digit.owner, 1).first->second;
    digit.owner_stride = stride;
    stride *= digit.extent;
  }
  return Layout(2, digits);
}

// Where the elements of one layout are in another, place by place.
struct Owners {
  bool same_threads = true;
  bool same_warps = true;
  std::vector<std::vector<int>> candidates;  // by register: those that all its threads can take

  bool same_registers() const {
    return std::none_of(candidates.begin(), candidates.end(),
                        [](const std::vector<int>& common) { return common.empty(); });
  }
};

Owners owners_of(const Layout& from, const Layout& to) {
  Owners out;
  out.candidates.resize(static_cast<size_t>(to.registers()));
  std::vector<bool> seen(out.candidates.size());
  for (const Place& place : places_of(to)) {
    const std::vector<int> at = to.coordinates_of(place);
    bool in_thread = false, in_warp = false;
    std::vector<int> here;
    for (int copy = 0; copy < from.copies(); ++copy) {
      const Place old = from.owner_of(at, copy);
      in_thread = in_thread || old.same_thread(place);
      in_warp = in_warp || old.same_warp(place);
      if (old.same_thread(place)) here.push_back(old.reg);
    }
    out.same_threads = out.same_threads && in_thread;
    out.same_warps = out.same_warps && in_warp;
    std::vector<int>& common = out.candidates[static_cast<size_t>(place.reg)];
    if (!seen[static_cast<size_t>(place.reg)]) common = here;
    seen[static_cast<size_t>(place.reg)] = true;
    std::erase_if(common,
                  [&](int reg) { return std::find(here.begin(), here.end(), reg) == here.end(); });
  }
  return out;
}

// Way by way against the definition, on random pairs with a common shape.
TEST(Convert, AgreesWithTheDefinition) {
  base::Random random(2);
  int count[3] = {0, 0, 0};
  for (int round = 0; round < 400; ++round) {
    const Layout from = random_layout(random, 2, true);
    const Layout to = dealt_anew(from, random);
    const Conversion conversion = convert_kind(from, to);
    ++count[static_cast<int>(conversion.kind)];
    const Owners owners = owners_of(from, to);
    const ConvertKind expected = owners.same_threads && owners.same_registers() ? ConvertKind::Free
                                 : owners.same_warps && common_digits(from, to).has_value()
                                     ? ConvertKind::Lanes
                                     : ConvertKind::Shared;
    ASSERT_EQ(conversion.kind, expected) << to_text(from) << " / " << to_text(to);
    // With digits, threads that keep their elements renumber them alike.
    EXPECT_EQ(owners.same_threads, conversion.kind == ConvertKind::Free);
    if (conversion.kind != ConvertKind::Free) continue;
    for (size_t r = 0; r < owners.candidates.size(); ++r) {
      const std::vector<int>& common = owners.candidates[r];
      EXPECT_NE(std::find(common.begin(), common.end(), conversion.source[r]), common.end());
    }
  }
  EXPECT_GT(count[0], 10);
  EXPECT_GT(count[1], 10);
  EXPECT_GT(count[2], 10);
}

TEST(Reduce, PartsOfTheAccumulator) {
  const Reduction rows = drop_axis(acc(16), 1);
  EXPECT_EQ(to_text(rows.result), "0: warp 4*16, reg 2*8, lane 8*1@4; copies: lane 4");
  EXPECT_EQ(rows.lane_masks, (std::vector<int>{1, 2}));
  EXPECT_EQ(rows.warps, 1);
  EXPECT_EQ(rows.sources, (std::vector<std::vector<int>>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  const Reduction columns = drop_axis(acc(16), 0);
  EXPECT_EQ(to_text(columns.result), "0: reg 2*8@2, lane 4*2, reg 2*1; copies: warp 4, lane 8@4");
  EXPECT_EQ(columns.lane_masks, (std::vector<int>{4, 8, 16}));
  EXPECT_EQ(columns.warps, 4);
  EXPECT_EQ(columns.sources, (std::vector<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

// Sums random numbers in the three parts and compares with the sum along the axis.
TEST(Reduce, PartsAddUpToTheSum) {
  base::Random random(3);
  for (int round = 0; round < 200; ++round) {
    const Layout layout = random_layout(random, 2, true);
    const int axis = static_cast<int>(random.integer(0, 1));
    const Reduction reduction = drop_axis(layout, axis);
    SCOPED_TRACE(to_text(layout));
    ASSERT_EQ(reduction.result.rank(), 1);
    std::map<std::vector<int>, int64_t> value;
    std::vector<int64_t> expected(static_cast<size_t>(reduction.result.shape()[0]));
    std::map<Place, int64_t> held;
    for (const Place& place : places_of(layout)) {
      const std::vector<int> at = layout.coordinates_of(place);
      const auto [entry, is_new] = value.try_emplace(at, random.integer(-1000, 1000));
      if (is_new) expected[static_cast<size_t>(at[static_cast<size_t>(1 - axis)])] += entry->second;
      held[place] = entry->second;
    }
    // Thread part.
    std::map<Place, int64_t> partial;
    for (Place place : places_of(reduction.result)) {
      const int target = place.reg;
      int64_t sum = 0;
      for (const int source : reduction.sources[static_cast<size_t>(target)]) {
        place.reg = source;
        sum += held.at(place);
      }
      place.reg = target;
      partial[place] = sum;
    }
    // Lane part.
    for (const int mask : reduction.lane_masks) {
      const std::map<Place, int64_t> before = partial;
      for (auto& [place, sum] : partial) {
        Place other = place;
        other.lane ^= mask;
        sum += before.at(other);
      }
    }
    // Warp part: every element is the sum over the different warps' values.
    std::vector<int64_t> total(expected.size());
    std::map<int, std::map<std::pair<int, int>, int64_t>> per_warp;
    for (const auto& [place, sum] : partial) {
      const int at = reduction.result.coordinates_of(place)[0];
      const auto [entry, is_new] = per_warp[at].try_emplace({place.warp_group, place.warp}, sum);
      EXPECT_EQ(entry->second, sum) << is_new;
    }
    const int layout_copies = layout.copies();
    for (const auto& [at, warps] : per_warp) {
      for (const auto& [warp, sum] : warps) total[static_cast<size_t>(at)] += sum;
      // Warps that were copies to begin with hold the same partial result.
      const auto held_by = static_cast<int>(warps.size());
      ASSERT_EQ(held_by % reduction.warps, 0);
      const int repeated = held_by / reduction.warps;
      EXPECT_LE(repeated, layout_copies);
      EXPECT_EQ(total[static_cast<size_t>(at)], expected[static_cast<size_t>(at)] * repeated);
    }
  }
}

}  // namespace
}  // namespace nautilus::layout
