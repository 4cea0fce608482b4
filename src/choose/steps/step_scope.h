// SPDX-License-Identifier: Apache-2.0
// What all makers of steps of reductions need beside the nests.
#pragma once

#include <map>
#include <string>

#include "lower/points/points_kernel.h"

namespace nautilus::choose {

struct StepScope {
  const std::map<std::string, ir::TensorType>& buffers;  // that nests read and write
  lower::FreshNames& names;
  expr::ExprPool& pool;
};

}  // namespace nautilus::choose
