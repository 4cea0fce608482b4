// SPDX-License-Identifier: Apache-2.0
//
// The register layouts that matrix instructions fix. Axis 0 is the row of the matrix in question,
// axis 1 its column; a register of a layout is one element, whatever its width. In 16-bit operands
// two elements share a 32-bit register: elements 2p and 2p+1 are the low and the high half of
// register p, which the digit c of every layout here (innermost, a register, extent 2) makes so.
//
// With g = lane / 4, t = lane % 4 (PTX ISA, the figures of register fragments for wgmma and mma):
//
//   acc(n)        row = 16*warp + 8*h + g   col = 8*j + 2*t + c          register (j, h, c)
//   afrag(k)      row = 16*warp + 8*h + g   col = 16*i + 8*q + 2*t + c   register (i, q, h, c)
//   row_stats()   row = 16*warp + 8*h + g   copies in the lanes t        register (h)
//
// acc(n) of f32, rounded to 16 bits in place, is afrag(n): with j = 2*i + q the digits are the
// same. The four 32-bit operand registers of k-slice i are the pairs (8i, 8i+1), (8i+2, 8i+3),
// (8i+4, 8i+5), (8i+6, 8i+7) of the accumulator.
//
// The layouts are for one warp group (wgmma) or one warp (mma); larger tiles are made of them with
// Layout::repeat.
#pragma once

#include "layout/digits.h"

namespace nautilus::layout {

// The accumulator of wgmma m64nNk*, 32-bit: 64 x n, n a multiple of 8 up to 256.
Layout acc(int n);

// The A operand of wgmma m64nNk16 in registers, 16-bit: 64 x k, k a multiple of 16.
Layout afrag(int k);

// One value per row of acc(n), the same for every n: drop_axis(acc(n), 1).
Layout row_stats();

// mma.sync m16n8k16 with 16-bit operands and 32-bit accumulator, for one warp: the accumulator
// 16 x n, the A operand 16 x k, and the B operand k x n (axis 0 is k), whose registers are ordered
// by column block, then by k-slice.
Layout mma_acc(int n);
Layout mma_afrag(int k);
Layout mma_bfrag(int k, int n);

}  // namespace nautilus::layout
