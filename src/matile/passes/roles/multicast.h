// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// In kernels with clusters, a slot tile that all CTAs of a cluster copy from the same place is
// loaded once: each CTA copies its share and multicasts it.
//
//   map Bm[...] = B[n, k] box 64, 192             map Bm[...] = B[n, k] box 64, 96 promote 128
//   kernel gemm cluster 2 rank r                  kernel gemm cluster 2 rank r
//     ...                                           ...
//     let m = 2 * x + r                      ->     let m = 2 * x + r
//     fill AB                                       fill AB
//       copy a from Am[64 * k, 128 * m]               copy a from Am[64 * k, 128 * m]
//       copy b from Bm[64 * k, 192 * n]               copy b from Bm[64 * k, 192 * n] multicast
//
// A copy stays unchanged if its place depends on the rank, if a condition on the rank guards it, or
// if its slot tile does not divide into equal shares. Cache lines of 128 bytes are fetched singly:
// the neighbouring line belongs to the other CTA.
//
// Needs final form, keeps it. Test: test/matile/passes/multicast.matile.
std::optional<ir::Program> multicast(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile
