// SPDX-License-Identifier: Apache-2.0
// The first lines of `nautilus explain`: what is launched, how often each input is read, the least
// time that the machine needs, and which tensors pass through memory and why.
//
//   at M = 128, N = 128:
//   3 launches; 69.6 kB take 0.02 us at the speed of memory, 4.19 MFLOP of products 0.01 us
//     A_2: tile, 2 CTAs of 256 threads, on the matrix unit; reads Q, K; writes S
//     O_sum_rows_1024: rows, 128 CTAs of 128 threads; reads S; writes O.max, O.sum
//     O_kernel: points, 2048 CTAs of 128 threads; reads S, O.max, O.sum, V; writes O
//   each input is read once
//   through memory:
//     S f32[M, N], 65.5 kB: from A_2 to O_sum_rows_1024, O_kernel
//       O.e stays outside: a result outside lies between it and this kernel
#pragma once

#include "driver/report/program_facts.h"

namespace nautilus::driver {

std::string summary_text(const ir::Program& kernels, const ProgramFacts& facts);

}  // namespace nautilus::driver
