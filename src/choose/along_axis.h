// SPDX-License-Identifier: Apache-2.0
// What nests are to pieces of rows (piece_stages.h): reductions along one axis, elements, and what
// pieces left.
#pragma once

#include <optional>

#include "lower/points/points_kernel.h"
#include "scalar/ops.h"

namespace nautilus::choose {

// A nest that is one reduction over one axis.
struct AlongAxis {
  const scalar::Init* init = nullptr;
  const scalar::Update* update = nullptr;
  ir::Axis axis;
};

std::optional<AlongAxis> along_axis(const lower::MapNest& nest);

// One element of a tensor that a nest maps: its store, or null.
const scalar::Store* element_of(const lower::MapNest& nest);

// What the terms of a reduction over pieces are made of: a read of what each of them left; null for
// others. What was moved is the first factor.
expr::Expr part_read(const AlongAxis& rest);

}  // namespace nautilus::choose
