// SPDX-License-Identifier: Apache-2.0
// Nests as pieces of rows see them (piece_stages.h): reductions along one axis, elements, and
// reductions over the results of pieces.
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

// The read of a piece's result in the terms of a reduction over pieces; null for other reductions.
// The moved value is the first factor.
expr::Expr part_read(const AlongAxis& rest);

}  // namespace nautilus::choose
