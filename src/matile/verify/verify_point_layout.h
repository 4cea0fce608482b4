// SPDX-License-Identifier: Apache-2.0
// The rules of a layout: which threads have which points, in lines, tiles and patches, and with a
// copy of the result for each CTA.
#pragma once

#include "ir/verify.h"
#include "matile/point_layout.h"
#include "target/target.h"

namespace nautilus::matile {

void verify_point_layout(const Kernel& kernel, const target::Target& target, ir::Verifier& v);

// Whether all threads of a CTA are lanes of one point.
bool are_of_cta(const PointLayout& layout, const target::Target& target);

}  // namespace nautilus::matile
