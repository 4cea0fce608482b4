// SPDX-License-Identifier: Apache-2.0
//
// Reading and building are kept apart: operand_address knows only the fields, as the hardware does,
// and step_descriptor only the tile. That they meet in the right bytes is left to the tests.
#include "layout/descriptor.h"

#include "base/check.h"

namespace nautilus::layout {

namespace {

constexpr uint64_t kOffsetMask = (1u << 14) - 1;

uint64_t offset_bits(uint32_t bytes, const char* what) {
  NAUT_CHECK(bytes % 16 == 0 && bytes / 16 <= kOffsetMask,
             "descriptor {} of {} bytes: must be a multiple of 16 below 2^18", what, bytes);
  return bytes / 16;
}

uint64_t swizzle_bits(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::None:
      return 0;
    case Swizzle::B128:
      return 1;
    case Swizzle::B64:
      return 2;
    case Swizzle::B32:
      return 3;
  }
  NAUT_CHECK(false, "no such swizzle");
}

uint32_t bytes_of(uint64_t bits, int first) {
  return static_cast<uint32_t>(bits >> first & kOffsetMask) * 16;
}

void check_operand(const Operand& operand) {
  const PanelTile& tile = operand.tile;
  const auto atom = static_cast<uint32_t>(atom_bytes(tile.swizzle));
  NAUT_CHECK(operand.base % atom == 0, "operand at {}, not a multiple of {}", operand.base, atom);
  NAUT_CHECK(tile.rows % 8 == 0, "operand tile of {} rows", tile.rows);
  NAUT_CHECK(operand.k_extent() % k_step_elements(tile.element_bytes) == 0,
             "operand tile of {} elements along k", operand.k_extent());
  NAUT_CHECK(operand.major == Major::K || tile.element_bytes == 2,
             "MN-major operand of {}-byte elements", tile.element_bytes);
  const int granule = operand.major == Major::K ? 8 : tile.panel_cols();
  NAUT_CHECK(operand.first_mn % granule == 0 && operand.first_mn >= 0 &&
                 operand.first_mn < operand.mn_extent(),
             "operand begins at {} of {}, steps of {}", operand.first_mn, operand.mn_extent(),
             granule);
}

// Bytes from the beginning of the tile to the start address of a k-step, before the swizzle.
uint32_t start_offset(const Operand& operand, int step) {
  check_operand(operand);
  NAUT_CHECK(step >= 0 && step < operand.k_steps(), "k-step {} of {}", step, operand.k_steps());
  const PanelTile& tile = operand.tile;
  const int span = span_bytes(tile.swizzle);
  const int k = step * k_step_elements(tile.element_bytes);
  const bool k_major = operand.major == Major::K;
  const int row = k_major ? operand.first_mn : k;
  const int col = k_major ? k : operand.first_mn;
  return static_cast<uint32_t>(col / tile.panel_cols() * tile.panel_bytes() + row * span +
                               col % tile.panel_cols() * tile.element_bytes);
}

}  // namespace

uint64_t encode(const MatrixDescriptor& descriptor) {
  NAUT_CHECK(descriptor.base_offset < 8, "base offset {}", descriptor.base_offset);
  return offset_bits(descriptor.start, "start") |
         offset_bits(descriptor.leading, "leading offset") << 16 |
         offset_bits(descriptor.stride, "stride offset") << 32 |
         uint64_t{descriptor.base_offset} << 49 | swizzle_bits(descriptor.swizzle) << 62;
}

MatrixDescriptor decode(uint64_t bits) {
  constexpr Swizzle kSwizzles[] = {Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32};
  const MatrixDescriptor descriptor = {bytes_of(bits, 0), bytes_of(bits, 16), bytes_of(bits, 32),
                                       static_cast<uint32_t>(bits >> 49 & 7),
                                       kSwizzles[bits >> 62]};
  NAUT_CHECK(encode(descriptor) == bits, "descriptor {:#x} has unused bits set", bits);
  return descriptor;
}

uint32_t operand_address(const MatrixDescriptor& descriptor, Major major, int mn, int k,
                         int element_bytes) {
  NAUT_CHECK(descriptor.base_offset == 0, "base offset {}: only 0 is modelled",
             descriptor.base_offset);
  NAUT_CHECK(mn >= 0 && mn < 256 && k >= 0 && k < k_step_elements(element_bytes),
             "operand element ({}, {})", mn, k);
  NAUT_CHECK(major == Major::K || element_bytes == 2, "MN-major operand of {}-byte elements",
             element_bytes);
  const bool is_plain = descriptor.swizzle == Swizzle::None;
  const auto span = static_cast<uint32_t>(span_bytes(descriptor.swizzle));
  const auto row = static_cast<uint32_t>(major == Major::K ? mn : k);
  const auto bytes = static_cast<uint32_t>((major == Major::K ? k : mn) * element_bytes);
  // Which offset leads from one group of 8 rows to the next, and which from one panel to the next.
  // Only MN-major with a swizzle has them the other way round than its name suggests: without a
  // swizzle, "stride" always runs along mn.
  const bool stride_between_rows = major == Major::K || !is_plain;
  const uint32_t row_group = stride_between_rows ? descriptor.stride : descriptor.leading;
  const uint32_t panel = stride_between_rows ? descriptor.leading : descriptor.stride;
  const uint32_t linear = descriptor.start + row / 8 * row_group + row % 8 * span;
  // K-major with a swizzle: the 32 bytes of a step are in one row, wherever in it they start.
  const bool in_one_row = major == Major::K && !is_plain;
  const uint32_t along = in_one_row ? bytes : bytes / span * panel + bytes % span;
  return swizzled(linear + along, descriptor.swizzle);
}

MatrixDescriptor step_descriptor(const Operand& operand, int step) {
  const PanelTile& tile = operand.tile;
  const auto row_group = static_cast<uint32_t>(8 * span_bytes(tile.swizzle));
  const auto panel = static_cast<uint32_t>(tile.panel_bytes());
  MatrixDescriptor descriptor;
  descriptor.start = operand.base + start_offset(operand, step);
  descriptor.swizzle = tile.swizzle;
  if (tile.swizzle == Swizzle::None && operand.major == Major::MN) {
    descriptor.leading = row_group;
    descriptor.stride = panel;
  } else {
    // K-major with a swizzle ignores the leading offset; 16 is what is customary there.
    const bool is_ignored = tile.swizzle != Swizzle::None && operand.major == Major::K;
    descriptor.leading = is_ignored ? 16 : panel;
    descriptor.stride = row_group;
  }
  return descriptor;
}

uint32_t step_advance(const Operand& operand, int step) {
  return (start_offset(operand, step) - start_offset(operand, 0)) / 16;
}

uint32_t operand_address(const Operand& operand, int step, int mn, int k) {
  NAUT_CHECK(operand.first_mn + mn < operand.mn_extent(), "element {} of an operand of {} from {}",
             mn, operand.mn_extent(), operand.first_mn);
  return operand_address(step_descriptor(operand, step), operand.major, mn, k,
                         operand.tile.element_bytes);
}

}  // namespace nautilus::layout
