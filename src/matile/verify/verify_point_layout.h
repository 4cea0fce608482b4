// SPDX-License-Identifier: Apache-2.0
// The rules of where the points of a thread lie: in lines, tiles and patches, and with a copy of
// the result for each CTA.
#pragma once

#include "ir/verify.h"
#include "matile/ops.h"
#include "target/target.h"

namespace nautilus::matile {

void verify_point_layout(const Points& points, const target::Target& target, ir::Verifier& v);

}  // namespace nautilus::matile
