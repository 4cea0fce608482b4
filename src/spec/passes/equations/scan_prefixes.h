// SPDX-License-Identifier: Apache-2.0
// Reductions of all prefixes, or of all suffixes, of an axis become scans, which need as many steps
// as the axis has elements instead of their square:
//
//   let Y[i < N, t < T] : f32 = sum[s < T] where(s <= t, X[i, s], 0.0)
// becomes
//   state Y : f32[N, T] along 1
//   let Y[i < N, t < T] : f32 = where(t >= 1, Y[i, t - 1], 0.0) + X[i, t]
//
// and the sum before t, `sum[s < t]`, adds the term of the previous step:
//   let Y[i < N, t < T] : f32 = where(t >= 1, Y[i, t - 1], 0.0) + where(t >= 1, X[i, t - 1], 0.0)
//
// With another bound, or with axes of different extents, the scan is an equation of its own that
// the first one reads. Unchanged: positions of extremes, terms that contain t or read nothing, and
// terms that may be read only where the bound allows it. Needs reductions in equations of their
// own. Exactness class: exact; from the end, exact over the reals. Test:
// test/spec/scan_prefixes.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> scan_prefixes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
