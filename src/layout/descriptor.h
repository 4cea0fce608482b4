// SPDX-License-Identifier: Apache-2.0
//
// How the matrix unit finds a shared-memory operand: the 64-bit matrix descriptor of wgmma, and a
// model of the addresses the unit reads for it. Tests compare the model with that of the copy
// engine (swizzle.h): both must name the same byte for the same element.
//
// Fields (PTX ISA, "Matrix descriptor format" of wgmma):
//
//     bits 0-13    start address >> 4            (of 18 bits of shared-memory address)
//     bits 16-29   leading-dimension byte offset >> 4     LBO
//     bits 32-45   stride-dimension byte offset >> 4      SBO
//     bits 49-51   base offset
//     bits 62-63   swizzle: 0 none, 1 = 128 bytes, 2 = 64 bytes, 3 = 32 bytes
//
// One wgmma reads, of each operand, mn rows (64 of A, N of B) by 32 bytes along k: 16 elements of
// 16 bits. K-major means that k runs along the rows of a panel, MN-major that the rows of A or
// columns of B do ("transposed", trans-a / trans-b = 1; for 16-bit elements only). Before the
// swizzle, element (mn, k) is at start + offset with
//
//     K-major, swizzled     mn/8 * SBO + mn%8 * span + k bytes             (LBO is not used)
//     K-major, none         mn/8 * SBO + mn%8 * 16 + k bytes/16 * LBO + k bytes%16
//     MN-major, swizzled    mn bytes/span * LBO + mn bytes%span + k/8 * SBO + k%8 * span
//     MN-major, none        mn/8 * SBO + mn%8 * 2 + k/8 * LBO + k%8 * 16
//
// and the swizzle is applied to the sum. This is the table "Canonical layouts" of the PTX ISA
// (under "Shared memory matrix layout" of wgmma), which CUTLASS states in the same form; that LBO
// is not used for K-major with a swizzle is said there under "Strides". Kernels of ours that ran on
// an H200 used K-major with 128 bytes (LBO 16, SBO 1024, +32 per step) and MN-major B with 128
// bytes (LBO = panel, SBO 1024, +2048 per step), of A as well. What rests on documents alone: the
// 64- and 32-byte modes, the modes without swizzle.
//
// That the swizzle sees the absolute address, so that a start 32 bytes into a row is legal with
// base offset 0, is confirmed by the same kernels: they step along k in that way. A base offset
// other than 0 serves tiles that do not begin at a multiple of the atom; ours do, and the model
// refuses it.
#pragma once

#include <cstdint>

#include "layout/swizzle.h"

namespace nautilus::layout {

struct MatrixDescriptor {
  uint32_t start = 0;  // bytes, multiples of 16 below 2^18; so are the next two
  uint32_t leading = 0;
  uint32_t stride = 0;
  uint32_t base_offset = 0;  // 0..7
  Swizzle swizzle = Swizzle::B128;

  friend bool operator==(const MatrixDescriptor&, const MatrixDescriptor&) = default;
};

uint64_t encode(const MatrixDescriptor& descriptor);
// Unused bits must be zero.
MatrixDescriptor decode(uint64_t bits);

enum class Major : uint8_t { K, MN };

// Elements along k in one instruction: 32 bytes.
inline constexpr int k_step_elements(int element_bytes) { return 32 / element_bytes; }

// Where the matrix unit reads element (mn, k) of an operand, k below k_step_elements. The result is
// a shared-memory byte address.
uint32_t operand_address(const MatrixDescriptor& descriptor, Major major, int mn, int k,
                         int element_bytes = 2);

// An operand in panels: K-major if the rows of the tile are mn and its columns k, MN-major if the
// rows are k and the columns mn. The tile begins at `base`, a multiple of its atom. `first_mn` is
// where the instruction's mn range begins within the tile, as when each of several warp groups has
// 64 rows of A: a multiple of 8 (K-major) or of the panel width (MN-major).
struct Operand {
  PanelTile tile;
  Major major = Major::K;
  uint32_t base = 0;
  int first_mn = 0;

  int mn_extent() const { return major == Major::K ? tile.rows : tile.cols; }
  int k_extent() const { return major == Major::K ? tile.cols : tile.rows; }
  int k_steps() const { return k_extent() / k_step_elements(tile.element_bytes); }
};

// The descriptor of k-step `step`; that of step 0 has its start at the first element.
MatrixDescriptor step_descriptor(const Operand& operand, int step);

// What to add to the encoded descriptor of step 0 for step `step`: the distance of the start
// addresses >> 4. It fits the low word, so that kernels step by an addition to it.
uint32_t step_advance(const Operand& operand, int step);

// Where the matrix unit reads element (mn, k) of k-step `step`, mn counted from first_mn.
uint32_t operand_address(const Operand& operand, int step, int mn, int k);

}  // namespace nautilus::layout
