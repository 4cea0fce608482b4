// SPDX-License-Identifier: Apache-2.0
//
// Each function is the line of the table in the header, digit by digit.
#include "layout/fragments.h"

#include "base/check.h"
#include "layout/convert.h"

namespace nautilus::layout {

namespace {

// Four warps of 16 rows each, as every wgmma fragment has them.
Layout four_warps(const Layout& warp) { return warp.repeat(0, 4, Owner::Warp); }

}  // namespace

Layout mma_acc(int n) {
  NAUT_CHECK(n >= 8 && n % 8 == 0, "accumulator of {} columns", n);
  return Layout(2, {{.axis = 0, .extent = 2, .stride = 8, .owner_stride = 2},
                    {.axis = 0, .extent = 8, .stride = 1, .owner = Owner::Lane, .owner_stride = 4},
                    {.axis = 1, .extent = n / 8, .stride = 8, .owner_stride = 4},
                    {.axis = 1, .extent = 4, .stride = 2, .owner = Owner::Lane, .owner_stride = 1},
                    {.axis = 1, .extent = 2, .stride = 1, .owner_stride = 1}});
}

Layout mma_afrag(int k) {
  NAUT_CHECK(k >= 16 && k % 16 == 0, "A operand of {} columns", k);
  return Layout(2, {{.axis = 0, .extent = 2, .stride = 8, .owner_stride = 2},
                    {.axis = 0, .extent = 8, .stride = 1, .owner = Owner::Lane, .owner_stride = 4},
                    {.axis = 1, .extent = k / 16, .stride = 16, .owner_stride = 8},
                    {.axis = 1, .extent = 2, .stride = 8, .owner_stride = 4},
                    {.axis = 1, .extent = 4, .stride = 2, .owner = Owner::Lane, .owner_stride = 1},
                    {.axis = 1, .extent = 2, .stride = 1, .owner_stride = 1}});
}

Layout mma_bfrag(int k, int n) {
  NAUT_CHECK(k >= 16 && k % 16 == 0 && n >= 8 && n % 8 == 0, "B operand of {} x {}", k, n);
  return Layout(2,
                {{.axis = 0, .extent = k / 16, .stride = 16, .owner_stride = 4},
                 {.axis = 0, .extent = 2, .stride = 8, .owner_stride = 2},
                 {.axis = 0, .extent = 4, .stride = 2, .owner = Owner::Lane, .owner_stride = 1},
                 {.axis = 0, .extent = 2, .stride = 1, .owner_stride = 1},
                 {.axis = 1, .extent = n / 8, .stride = 8, .owner_stride = k / 4},
                 {.axis = 1, .extent = 8, .stride = 1, .owner = Owner::Lane, .owner_stride = 4}});
}

Layout acc(int n) {
  NAUT_CHECK(n <= 256, "wgmma accumulator of {} columns", n);
  return four_warps(mma_acc(n));
}

Layout afrag(int k) { return four_warps(mma_afrag(k)); }

Layout row_stats() { return drop_axis(acc(8), 1).result; }

}  // namespace nautilus::layout
