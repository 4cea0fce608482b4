// SPDX-License-Identifier: Apache-2.0
// Why a fusion has no contraction that matrix instructions compute, for people.
#pragma once

#include <string>

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

std::string why_no_dot(const Fusion& fusion, expr::ExprPool& pool);

}  // namespace nautilus::schedule
