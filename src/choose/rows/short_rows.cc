// SPDX-License-Identifier: Apache-2.0
#include "choose/rows/short_rows.h"

#include <algorithm>

namespace nautilus::choose {
namespace {

using decision::HoldKind;
using lower::RowShape;

}  // namespace

// A register has two elements of 16 bits: a lane has an even number of them.
int64_t columns_of_lanes(int64_t columns, int64_t lanes, int64_t by) {
  const int64_t unit = lanes * std::max<int64_t>(by, 2);
  return std::max<int64_t>((columns + unit - 1) / unit, 1) * unit;
}

int64_t vector_of_row(int64_t columns, const target::Rows& rows) {
  return columns % rows.least_vector == 0 ? rows.least_vector : 1;
}

// So many that a lane has the target's number of vectors, or half as many lanes if these leave less
// of the last vectors empty. One lane has neighbours, which are vectors: only for two elements can
// it be alone where tensors may not be aligned.
int64_t lanes_of_row(int64_t columns, int64_t by, const target::Target& target) {
  const target::Rows& rows = target.rows;
  const int64_t of_lane = by > 1 ? by * rows.lane_vectors : rows.lane_elements;
  const int64_t least = by > 1 || columns <= 2 ? 1 : 2;
  int64_t lanes = least;
  while (lanes < target.limits.warp_threads && lanes * of_lane < columns) lanes *= 2;
  const bool is_fuller = lanes > least && columns_of_lanes(columns, lanes / 2, by) <
                                              columns_of_lanes(columns, lanes, by);
  return is_fuller ? lanes / 2 : lanes;
}

bool may_be_short(const lower::RowGroup& group, double columns) {
  return group.outer.empty() && !group.rows.empty() && !group.exists &&
         group.place.op() == expr::Op::Var && !lower::has_elements_only(group) &&
         columns <= static_cast<double>(group.target->rows.short_columns.back());
}

std::optional<RowShape> short_row(const lower::RowContext& context, int64_t columns, int64_t by) {
  if (!may_be_short(context.group, static_cast<double>(columns))) return std::nullopt;
  const int64_t lanes = lanes_of_row(columns, by, *context.group.target);
  RowShape shape{columns_of_lanes(columns, lanes, by), by, HoldKind::Row};
  shape.lanes = lanes;
  const lower::RowRoom room = lower::row_room(context, shape);
  return room.needed <= room.given ? std::optional(shape) : std::nullopt;
}

}  // namespace nautilus::choose
