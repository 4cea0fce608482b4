// SPDX-License-Identifier: Apache-2.0
// Reductions of all prefixes of an axis, or of all that follow its elements, become scans, which
// take as many steps as the axis has elements instead of their square:
//
//   let Y[i < N, t < T] : f32 = sum[s < T] where(s <= t, X[i, s], 0.0)
// becomes
//   state Y : f32[N, T] along 1
//   let Y[i < N, t < T] : f32 = where(t >= 1, Y[i, t - 1], 0.0) + X[i, t]
//
// and what stands before t, `sum[s < t]`, adds the term of the step before:
//   let Y[i < N, t < T] : f32 = where(t >= 1, Y[i, t - 1], 0.0) + where(t >= 1, X[i, t - 1], 0.0)
//
// Where the bound is another one, or the axes have different extents, the scan is an equation of
// its own that the first one reads. Stay: positions of extremes, terms that contain t or read
// nothing, and terms that may be read only where the bound allows it. Needs reductions in equations
// of their own. Exactness class: exact; from the end, exact over the reals. Test:
// test/spec/scan_prefixes.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> scan_prefixes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec
