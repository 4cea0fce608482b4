// SPDX-License-Identifier: Apache-2.0
//
// Digits are kept in canonical form from construction on, so every operation here is a loop over
// a handful of digits and never has to ask whether the layout makes sense.
#include "layout/digits.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace nautilus::layout {

namespace {

// Far above any tile, and such that the number of places is still an int.
constexpr int64_t kMaxExtent = int64_t{1} << 20;

struct Step {
  int stride;
  int extent;
};

// Whether the steps, in any order, form a mixed-radix system; the product of the extents if so.
std::optional<int64_t> radix_product(std::vector<Step> steps) {
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.stride < b.stride; });
  int64_t product = 1;
  for (const Step& step : steps) {
    if (step.extent == 1) continue;
    if (step.stride != product) return std::nullopt;
    product *= step.extent;
    if (product > kMaxExtent) return std::nullopt;
  }
  return product;
}

std::vector<Step> steps_of_owner(std::span<const Digit> digits, Owner owner) {
  std::vector<Step> steps;
  for (const Digit& digit : digits) {
    if (digit.owner == owner) steps.push_back({digit.owner_stride, digit.extent});
  }
  return steps;
}

std::vector<Step> steps_of_axis(std::span<const Digit> digits, int axis) {
  std::vector<Step> steps;
  for (const Digit& digit : digits) {
    if (digit.axis == axis) steps.push_back({digit.stride, digit.extent});
  }
  return steps;
}

// The order of the canonical form.
bool comes_before(const Digit& a, const Digit& b) {
  if ((a.axis == kCopies) != (b.axis == kCopies)) return b.axis == kCopies;
  if (a.axis != b.axis) return a.axis < b.axis;
  if (a.axis != kCopies) return a.stride > b.stride;
  return std::tuple(a.owner, -a.owner_stride) < std::tuple(b.owner, -b.owner_stride);
}

// `high` directly follows `low` in its axis (or both are copies) and in its owner.
bool continues(const Digit& high, const Digit& low) {
  return high.axis == low.axis && high.owner == low.owner &&
         high.stride == low.stride * low.extent &&
         high.owner_stride == low.owner_stride * low.extent;
}

std::vector<Digit> canonical(std::vector<Digit> digits) {
  std::erase_if(digits, [](const Digit& digit) { return digit.extent == 1; });
  std::sort(digits.begin(), digits.end(), comes_before);
  std::vector<Digit> merged;
  for (const Digit& digit : digits) {
    if (!merged.empty() && continues(merged.back(), digit)) {
      const int extent = merged.back().extent * digit.extent;
      merged.back() = digit;
      merged.back().extent = extent;
    } else {
      merged.push_back(digit);
    }
  }
  return merged;
}

int value_of(const Digit& digit, const Place& place) {
  return place[digit.owner] / digit.owner_stride % digit.extent;
}

}  // namespace

std::string_view owner_name(Owner owner) {
  switch (owner) {
    case Owner::WarpGroup:
      return "group";
    case Owner::Warp:
      return "warp";
    case Owner::Lane:
      return "lane";
    case Owner::Register:
      return "reg";
  }
  NAUT_CHECK(false, "no such owner");
}

int& Place::operator[](Owner owner) {
  switch (owner) {
    case Owner::WarpGroup:
      return warp_group;
    case Owner::Warp:
      return warp;
    case Owner::Lane:
      return lane;
    case Owner::Register:
      return reg;
  }
  NAUT_CHECK(false, "no such owner");
}

int Place::operator[](Owner owner) const { return const_cast<Place&>(*this)[owner]; }

std::string Layout::flaw(int rank, std::span<const Digit> digits) {
  if (rank < 0) return "the rank is negative";
  for (const Digit& digit : digits) {
    if (digit.extent < 1) return fmt::format("a digit has extent {}", digit.extent);
    if (digit.axis == kCopies) {
      if (digit.stride != 0) return "a digit of copies has a stride";
    } else if (digit.axis < 0 || digit.axis >= rank) {
      return fmt::format("a digit has axis {}, the rank is {}", digit.axis, rank);
    }
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (!radix_product(steps_of_axis(digits, axis))) {
      return fmt::format("the strides of axis {} do not make a mixed-radix number", axis);
    }
  }
  for (const Owner owner : kOwners) {
    const std::optional<int64_t> extent = radix_product(steps_of_owner(digits, owner));
    if (!extent) {
      return fmt::format("the owner strides of {} do not make a mixed-radix number",
                         owner_name(owner));
    }
    if (owner == Owner::WarpGroup && *extent > 8) {
      return fmt::format("{} warp groups, a block of threads has at most 8", *extent);
    }
    if (owner == Owner::Warp && *extent > 4) {
      return fmt::format("{} warps in a warp group, it has 4", *extent);
    }
    if (owner == Owner::Lane && *extent > 32) {
      return fmt::format("{} lanes in a warp, it has 32", *extent);
    }
  }
  return "";
}

Layout::Layout(int rank, std::vector<Digit> digits) {
  const std::string wrong = flaw(rank, digits);
  NAUT_CHECK(wrong.empty(), "not a layout: {}", wrong);
  shape_.assign(static_cast<size_t>(rank), 1);
  digits_ = canonical(std::move(digits));
  for (const Digit& digit : digits_) {
    if (digit.axis != kCopies) shape_[static_cast<size_t>(digit.axis)] *= digit.extent;
  }
}

int64_t Layout::elements() const {
  int64_t product = 1;
  for (const int extent : shape_) product *= extent;
  return product;
}

int Layout::extent(Owner owner) const {
  int product = 1;
  for (const Digit& digit : digits_) {
    if (digit.owner == owner) product *= digit.extent;
  }
  return product;
}

int Layout::threads() const {
  return extent(Owner::WarpGroup) * extent(Owner::Warp) * extent(Owner::Lane);
}

int Layout::copies() const {
  int product = 1;
  for (const Digit& digit : digits_) {
    if (digit.axis == kCopies) product *= digit.extent;
  }
  return product;
}

Place Layout::owner_of(std::span<const int> coordinates, int copy) const {
  NAUT_CHECK(coordinates.size() == shape_.size(), "{} coordinates for rank {}", coordinates.size(),
             shape_.size());
  NAUT_CHECK(copy >= 0 && copy < copies(), "copy {} of {}", copy, copies());
  for (size_t axis = 0; axis < shape_.size(); ++axis) {
    NAUT_CHECK(coordinates[axis] >= 0 && coordinates[axis] < shape_[axis],
               "coordinate {} of axis {}, whose extent is {}", coordinates[axis], axis,
               shape_[axis]);
  }
  Place place;
  for (const Digit& digit : digits_) {
    int value = 0;
    if (digit.axis == kCopies) {
      value = copy % digit.extent;
      copy /= digit.extent;
    } else {
      value = coordinates[static_cast<size_t>(digit.axis)] / digit.stride % digit.extent;
    }
    place[digit.owner] += value * digit.owner_stride;
  }
  return place;
}

Place Layout::owner_of(std::initializer_list<int> coordinates, int copy) const {
  return owner_of(std::span<const int>(coordinates.begin(), coordinates.size()), copy);
}

std::vector<int> Layout::coordinates_of(const Place& place) const {
  for (const Owner owner : kOwners) {
    NAUT_CHECK(place[owner] >= 0 && place[owner] < extent(owner), "{} {}, in use are {}",
               owner_name(owner), place[owner], extent(owner));
  }
  std::vector<int> coordinates(shape_.size());
  for (const Digit& digit : digits_) {
    if (digit.axis == kCopies) continue;
    coordinates[static_cast<size_t>(digit.axis)] += value_of(digit, place) * digit.stride;
  }
  return coordinates;
}

std::optional<int> Layout::register_of(std::span<const int> coordinates,
                                       const Place& thread) const {
  Place place = owner_of(coordinates);
  // Which copy the thread could hold follows from its own indices.
  for (const Digit& digit : digits_) {
    if (digit.axis != kCopies || digit.owner == Owner::Register) continue;
    place[digit.owner] += value_of(digit, thread) * digit.owner_stride;
  }
  if (!place.same_thread(thread)) return std::nullopt;
  return place.reg;
}

Layout Layout::repeat(int axis, int count, Owner owner) const {
  NAUT_CHECK(axis >= 0 && axis < rank(), "axis {} of rank {}", axis, rank());
  std::vector<Digit> digits = digits_;
  digits.push_back({axis, count, shape_[static_cast<size_t>(axis)], owner, extent(owner)});
  return Layout(rank(), std::move(digits));
}

}  // namespace nautilus::layout
