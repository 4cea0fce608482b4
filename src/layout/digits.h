// SPDX-License-Identifier: Apache-2.0
//
// Layouts: which thread holds which element of a tile, in which register.
//
// A tile that lives in registers is spread over threads by the instruction that made it. The
// matrix unit of a Hopper SM, for example, leaves a 64 x n block of C in the registers of four
// warps such that, with g = lane / 4 and t = lane % 4,
//
//     row = 16*warp + 8*h + g         col = 8*j + 2*t + c         register = 4*j + 2*h + c
//
// for h < 2, j < n/8, c < 2. Everything here is a digit of a mixed-radix number. Write the row as
// (warp, h, g) with radices (4, 2, 8) and the column as (j, t, c) with radices (n/8, 4, 2). Then
// each digit of a coordinate is at the same time a digit of one of the four indices that name a
// place: warp group, warp, lane, register. A layout is the list of these digits:
//
//     digit   axis  extent  stride   owner     owner_stride
//     warp    0     4       16       warp      1
//     h       0     2       8        register  2
//     g       0     8       1        lane      4
//     j       1     n/8     8        register  4
//     t       1     4       2        lane      1
//     c       1     2       1        register  1
//
// A digit of value d adds d * stride to the coordinate of its axis and d * owner_stride to the
// index of its owner. Extents need not be powers of two: with n = 80 the digit j has extent 10.
//
// Worked example, n = 16: who holds element (27, 13)?
//
//     27 = 1*16 + 1*8 + 3        warp = 1, h = 1, g = 3
//     13 = 1*8  + 2*2 + 1        j = 1, t = 2, c = 1
//     lane = 4*g + t = 14        register = 4*j + 2*h + c = 7
//
// and back: warp 1, lane 14, register 7 has the digits above, hence the element (27, 13).
//
// Both directions are exact because of one rule, which the constructor checks: sorted by stride,
// the digits of an axis are a mixed-radix system (the first stride is 1, each next one is the
// product of the extents below), and sorted by owner_stride so are the digits of an owner. No
// coordinate and no place is left out or counted twice, so the map is a bijection by construction.
//
// Copies. The row statistics of a softmax are held by all four lanes t of a row. Such a layout has
// a digit with axis = kCopies: it belongs to an owner but to no axis, and its value is free. Every
// element then has one owner per value: copies() of them. Reducing an axis turns its lane digits
// into copies (a butterfly leaves the result in every lane); see convert.h.
//
// Canonical form. Two neighbouring digits of one axis that are also neighbours in one owner are
// one larger digit, and a digit of extent 1 says nothing. The constructor merges the former, drops
// the latter and sorts the rest, most significant first. The form is unique (the first digit of an
// axis ends where the owner stops growing in equal steps, which is a property of the map alone), so
// two layouts are equal as maps exactly if operator== says so. The digits i, q of a matrix operand
// (col = 16*i + 8*q + ..., register = 8*i + 4*q + ...) merge into j = 2*i + q: what the matrix unit
// wrote as an accumulator is, register by register, what it reads as an operand.
//
// Text. One clause per axis, "owner extent*stride@owner_stride", with "@1" left out:
//
//     0: warp 4*16, reg 2*8@2, lane 8*1@4; 1: reg 10*8@4, lane 4*2, reg 2*1
//     0: warp 4*16, reg 2*8, lane 8*1@4; copies: lane 4
//
// XOR swizzles are not digits. They concern byte addresses in shared memory only: swizzle.h.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::layout {

enum class Owner : uint8_t { WarpGroup, Warp, Lane, Register };
inline constexpr std::array<Owner, 4> kOwners = {Owner::WarpGroup, Owner::Warp, Owner::Lane,
                                                 Owner::Register};

// "group", "warp", "lane", "reg".
std::string_view owner_name(Owner owner);

// The axis of a digit that belongs to none.
inline constexpr int kCopies = -1;

struct Digit {
  int axis = 0;
  int extent = 1;
  int stride = 1;  // 0 for copies
  Owner owner = Owner::Register;
  int owner_stride = 1;

  friend auto operator<=>(const Digit&, const Digit&) = default;
};

// A register of a thread. A warp is counted within its warp group, a lane within its warp.
struct Place {
  int warp_group = 0;
  int warp = 0;
  int lane = 0;
  int reg = 0;

  int& operator[](Owner owner);
  int operator[](Owner owner) const;
  bool same_warp(const Place& other) const {
    return warp_group == other.warp_group && warp == other.warp;
  }
  bool same_thread(const Place& other) const { return same_warp(other) && lane == other.lane; }
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Layout {
 public:
  // One element of a tile without axes, in register 0 of one thread.
  Layout() = default;
  // The digits may come in any order; they must have no flaw.
  Layout(int rank, std::vector<Digit> digits);

  // What is wrong with a list of digits, or "" if they make a layout.
  static std::string flaw(int rank, std::span<const Digit> digits);

  int rank() const { return static_cast<int>(shape_.size()); }
  const std::vector<int>& shape() const { return shape_; }
  int64_t elements() const;

  // In canonical form: by axis, most significant first; then the copies, by owner.
  const std::vector<Digit>& digits() const { return digits_; }

  // How many indices of this owner are in use: 4 warps, 32 lanes, so many registers per thread.
  int extent(Owner owner) const;
  int registers() const { return extent(Owner::Register); }
  int threads() const;

  // How many places hold each element; 1 if the layout is a bijection of elements and places.
  int copies() const;
  bool is_bijective() const { return copies() == 1; }

  // The place of one copy of an element; copies are counted from 0.
  Place owner_of(std::span<const int> coordinates, int copy = 0) const;
  Place owner_of(std::initializer_list<int> coordinates, int copy = 0) const;

  // The element at a place, which must be in use.
  std::vector<int> coordinates_of(const Place& place) const;

  // The register in which the thread of `thread` holds the element, if it does. With copies in
  // registers, the first.
  std::optional<int> register_of(std::span<const int> coordinates, const Place& thread) const;

  // The tile laid `count` times along an axis: a new most significant digit of that axis, whose
  // owner counts it above what it counts already. repeat(0, 2, WarpGroup) stacks the rows of two
  // warp groups; repeat(1, 2, Register) doubles the columns of each thread.
  Layout repeat(int axis, int count, Owner owner) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<int> shape_;
  std::vector<Digit> digits_;
};

// The text form above. A layout without axes is "scalar", an axis of extent 1 "-".
std::string to_text(const Layout& layout);

// Reads the text form, in any order of digits. On failure returns nothing and says why in `error`.
std::optional<Layout> parse_layout(std::string_view text, std::string* error);

}  // namespace nautilus::layout
