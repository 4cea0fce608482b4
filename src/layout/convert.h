// SPDX-License-Identifier: Apache-2.0
//
// The cost of converting a tile from one layout to another, of reducing one of its axes, and of
// using a reduced tile together with the original. These are the only questions the compiler asks
// of layouts when it spreads them from the instructions that fix them; each is answered once, for
// any layout.
#pragma once

#include <optional>
#include <vector>

#include "layout/digits.h"

namespace nautilus::layout {

// How the elements reach their new owners.
//   Free    no element leaves its thread, and the renumbering of registers is the same in every
//           thread: a matter of names in the emitted text
//   Lanes   no element leaves its warp, and the layouts have common digits: exchanges between lanes
//   Shared  through shared memory
// A renumbering that depends on the thread is not Free, since registers cannot be indexed by a
// run-time value. Where the old layout has copies, layouts of digits do ask for one.
enum class ConvertKind : uint8_t { Free, Lanes, Shared };

// "free", "lanes", "shared".
std::string_view convert_kind_name(ConvertKind kind);

struct Conversion {
  ConvertKind kind = ConvertKind::Shared;
  // For Free: new register r is old register `source[r]`. A permutation if neither layout has
  // copies; a selection if the old one has copies that the new one lacks.
  std::vector<int> source;

  friend bool operator==(const Conversion&, const Conversion&) = default;
};

// Both layouts must have the same shape.
Conversion convert_kind(const Layout& from, const Layout& to);

// A digit of a coordinate that is a digit of both layouts, and where each has it.
struct CommonDigit {
  int extent = 1;
  Owner to = Owner::Register;
  int to_stride = 1;
  Owner from = Owner::Register;
  int from_stride = 1;

  friend bool operator==(const CommonDigit&, const CommonDigit&) = default;
};

// The digits into which both layouts divide all coordinates: the old place of an element is a sum
// over digits of its new one. Copies do not count as coordinates: a reader chooses among those of
// the old layout, and those of the new one do not matter. Nothing where digits straddle each other:
// 10 and 4 have no common refinement. Both layouts must have the same shape.
std::optional<std::vector<CommonDigit>> common_digits(const Layout& from, const Layout& to);

// A reduction along one axis. The digits of that axis say how it is done, innermost part first:
//   thread part  register digits: a thread combines `sources[r]` into its register r
//   lane part    lane digits: butterflies, one exchange with lane ^ mask per entry of `lane_masks`;
//                every lane ends with the result, so these digits become copies
//   warp part    warp and warp group digits: `warps` partial results per element meet in shared
//                memory; here too every warp reads the result, and the digits become copies
struct Reduction {
  Layout result;  // of rank one less
  std::vector<std::vector<int>> sources;
  std::vector<int> lane_masks;
  int warps = 1;
};

// Lane digits of the axis must have extents and strides that are powers of two; every layout of an
// instruction has.
Reduction drop_axis(const Layout& layout, int axis);

}  // namespace nautilus::layout
