// SPDX-License-Identifier: Apache-2.0
#include "choose/rows/short_rows.h"

#include <algorithm>

namespace nautilus::choose {
namespace {

using decision::HoldKind;
using lower::RowShape;

constexpr int64_t kWarp = 32;

// Of so many lanes. A register has two elements of 16 bits: a lane has an even number of them.
int64_t unit_of(int64_t lanes, int64_t by) { return lanes * std::max<int64_t>(by, 2); }

int64_t capacity_of(int64_t columns, int64_t lanes, int64_t by) {
  const int64_t unit = unit_of(lanes, by);
  return std::max<int64_t>((columns + unit - 1) / unit, 1) * unit;
}

}  // namespace

// So many that a lane has the target's number of vectors, or half as many lanes if these leave less
// of the last vectors empty.
int64_t lanes_of_row(int64_t columns, int64_t by, const target::Rows& rows) {
  const int64_t of_lane = by > 1 ? by * rows.lane_vectors : rows.lane_elements;
  int64_t lanes = 1;
  while (lanes < kWarp && lanes * of_lane < columns) lanes *= 2;
  const bool is_fuller =
      lanes > 1 && capacity_of(columns, lanes / 2, by) < capacity_of(columns, lanes, by);
  return is_fuller ? lanes / 2 : lanes;
}

bool may_be_short(const lower::RowGroup& group, double columns) {
  return group.outer.empty() && !group.rows.empty() && !group.exists &&
         !lower::has_elements_only(group) &&
         columns <= static_cast<double>(group.target->rows.short_columns.back());
}

std::optional<RowShape> short_row(const lower::RowContext& context, int64_t columns, int64_t by) {
  if (!may_be_short(context.group, static_cast<double>(columns))) return std::nullopt;
  const int64_t lanes = lanes_of_row(columns, by, context.choice());
  RowShape shape{capacity_of(columns, lanes, by), by, HoldKind::Row};
  shape.lanes = lanes;
  const lower::RowRoom room = lower::row_room(context, shape);
  return room.needed <= room.given ? std::optional(shape) : std::nullopt;
}

}  // namespace nautilus::choose
