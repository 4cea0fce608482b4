// SPDX-License-Identifier: Apache-2.0
//
// Conversions are decided by visiting every place of the new layout. A tile has at most some ten
// thousand elements, the answer is asked for once per edge of a kernel, and enumeration cannot be
// wrong about digits that straddle each other (radices 10 and 4, say) as an argument by cases can.
#include "layout/convert.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/check.h"
#include "layout/register_table.h"

namespace nautilus::layout {

namespace {

// Calls visit(place) for every place of a layout until it returns false.
template <typename Visit>
bool for_each_place(const Layout& layout, Visit&& visit) {
  Place place;
  for (place.warp_group = 0; place.warp_group < layout.extent(Owner::WarpGroup);
       ++place.warp_group) {
    for (place.warp = 0; place.warp < layout.extent(Owner::Warp); ++place.warp) {
      for (place.lane = 0; place.lane < layout.extent(Owner::Lane); ++place.lane) {
        for (place.reg = 0; place.reg < layout.registers(); ++place.reg) {
          if (!visit(static_cast<const Place&>(place))) return false;
        }
      }
    }
  }
  return true;
}

// The register map from `from` to `to`, where `project` turns coordinates of `to` into coordinates
// of `from`; nothing if some thread lacks an element or the threads disagree.
template <typename Project>
std::optional<std::vector<int>> register_map(const Layout& from, const Layout& to,
                                             Project&& project) {
  const RegisterTable sources(from);
  std::vector<int> map(static_cast<size_t>(to.registers()), -1);
  const bool agrees = for_each_place(to, [&](const Place& place) {
    const std::optional<int> source = sources.register_of(project(to.coordinates_of(place)), place);
    if (!source) return false;
    int& entry = map[static_cast<size_t>(place.reg)];
    if (entry == -1) entry = *source;
    return entry == *source;
  });
  if (!agrees) return std::nullopt;
  return map;
}

// Whether the warp of `place` has the element in some lane.
bool warp_holds(const Layout& layout, const std::vector<int>& coordinates, const Place& place) {
  Place at = layout.owner_of(coordinates);
  for (const Digit& digit : layout.digits()) {
    if (digit.axis != kCopies) continue;
    if (digit.owner != Owner::Warp && digit.owner != Owner::WarpGroup) continue;
    at[digit.owner] += place[digit.owner] / digit.owner_stride % digit.extent * digit.owner_stride;
  }
  return at.same_warp(place);
}

// The part of a layout's digits along one axis that begins at `stride`: its owner, and what one
// step adds there.
std::pair<Owner, int> digit_at(const Layout& layout, int axis, int stride) {
  for (const Digit& digit : layout.digits()) {
    if (digit.axis == axis && digit.stride <= stride && stride < digit.stride * digit.extent)
      return {digit.owner, stride / digit.stride * digit.owner_stride};
  }
  NAUT_CHECK(false, "no digit of {} has stride {} on axis {}", to_text(layout), stride, axis);
}

struct Renumbered {
  int extent;
  int before;
  int after;
};

// Closes the gaps that removed digits left in the register index: the remaining register digits
// keep their order. Returns the old and the new owner stride of each.
std::vector<Renumbered> close_gaps(std::vector<Digit>& digits) {
  std::vector<Digit*> registers;
  for (Digit& digit : digits) {
    if (digit.owner == Owner::Register) registers.push_back(&digit);
  }
  std::sort(registers.begin(), registers.end(),
            [](const Digit* a, const Digit* b) { return a->owner_stride < b->owner_stride; });
  std::vector<Renumbered> result;
  int next = 1;
  for (Digit* digit : registers) {
    result.push_back({digit->extent, digit->owner_stride, next});
    digit->owner_stride = next;
    next *= digit->extent;
  }
  return result;
}

}  // namespace

std::string_view convert_kind_name(ConvertKind kind) {
  switch (kind) {
    case ConvertKind::Free:
      return "free";
    case ConvertKind::Lanes:
      return "lanes";
    case ConvertKind::Shared:
      return "shared";
  }
  NAUT_CHECK(false, "no such way");
}

Conversion convert_kind(const Layout& from, const Layout& to) {
  NAUT_CHECK(from.shape() == to.shape(), "conversion between shapes: {} to {}", to_text(from),
             to_text(to));
  const auto same = [](std::vector<int> coordinates) { return coordinates; };
  if (std::optional<std::vector<int>> map = register_map(from, to, same)) {
    return {ConvertKind::Free, std::move(*map)};
  }
  const bool stays = for_each_place(
      to, [&](const Place& place) { return warp_holds(from, to.coordinates_of(place), place); });
  return {stays && common_digits(from, to) ? ConvertKind::Lanes : ConvertKind::Shared, {}};
}

std::optional<std::vector<CommonDigit>> common_digits(const Layout& from, const Layout& to) {
  NAUT_CHECK(from.shape() == to.shape(), "common digits of {} and {}", to_text(from), to_text(to));
  std::vector<CommonDigit> common;
  for (int axis = 0; axis < to.rank(); ++axis) {
    std::set<int> cuts = {1, to.shape()[static_cast<size_t>(axis)]};
    for (const Layout* layout : {&from, &to}) {
      for (const Digit& digit : layout->digits()) {
        if (digit.axis == axis) cuts.insert(digit.stride);
      }
    }
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      const int next = *std::next(cut);
      if (next % *cut != 0) return std::nullopt;
      const auto there = digit_at(to, axis, *cut);
      const auto here = digit_at(from, axis, *cut);
      common.push_back({next / *cut, there.first, there.second, here.first, here.second});
    }
  }
  return common;
}

Reduction drop_axis(const Layout& layout, int axis) {
  NAUT_CHECK(axis >= 0 && axis < layout.rank(), "axis {} of rank {}", axis, layout.rank());
  Reduction reduction;
  std::vector<Digit> kept;
  for (Digit digit : layout.digits()) {
    const bool dropped = digit.axis == axis;
    if (dropped && digit.owner == Owner::Register) continue;
    if (dropped && digit.owner == Owner::Lane) {
      const auto extent = static_cast<unsigned>(digit.extent);
      const auto stride = static_cast<unsigned>(digit.owner_stride);
      NAUT_CHECK(std::has_single_bit(extent) && std::has_single_bit(stride),
                 "butterfly over {} lanes with stride {}", extent, stride);
      for (unsigned mask = stride; mask < extent * stride; mask *= 2) {
        reduction.lane_masks.push_back(static_cast<int>(mask));
      }
    }
    if (dropped && (digit.owner == Owner::Warp || digit.owner == Owner::WarpGroup)) {
      reduction.warps *= digit.extent;
    }
    if (dropped) {
      digit.axis = kCopies;
      digit.stride = 0;
    } else if (digit.axis > axis) {
      --digit.axis;
    }
    kept.push_back(digit);
  }
  std::sort(reduction.lane_masks.begin(), reduction.lane_masks.end());
  const std::vector<Renumbered> renumbered = close_gaps(kept);
  reduction.result = Layout(layout.rank() - 1, std::move(kept));
  reduction.sources.resize(static_cast<size_t>(reduction.result.registers()));
  for (int reg = 0; reg < layout.registers(); ++reg) {
    int target = 0;
    for (const Renumbered& digit : renumbered) {
      target += reg / digit.before % digit.extent * digit.after;
    }
    reduction.sources[static_cast<size_t>(target)].push_back(reg);
  }
  return reduction;
}

}  // namespace nautilus::layout
