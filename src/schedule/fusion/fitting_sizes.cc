// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/fitting_sizes.h"

#include "schedule/fusion/tile_use.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

using expr::Op;

Shape candidate_shape(const Group& group) {
  Shape s{shape_of(group)};
  for (const Dot& d : group.dots) {
    const Expr depth = group.extents.at(d.depth);
    s.is_deep |= d.depth != group.stream && depth.op() == Op::IntConst &&
                 depth.integer() > group.target->tiles.whole_extent;
  }
  const Expr rows = group.extents.at(group.row);
  if (rows.op() == Op::IntConst) s.most_rows = rows.integer();
  s.is_block = group.row_block > 0;
  return s;
}

bool fits(const Group& group, const Shape& shape, const Sizes& s) {
  const auto ctas = static_cast<int>(s.resident);
  return tile_registers(group, s).all() <= most_tile_registers(group, s, shape.has_streamed_tile) &&
         shared_use(group, s).bytes() <= group.target->limits.shared_bytes(ctas);
}

std::vector<Sizes> fitting_sizes(const Group& group) {
  const Shape shape = candidate_shape(group);
  const target::Tiles& tiles = group.target->tiles;
  const int64_t least_rows = group.target->matrix.rows;
  std::vector<Sizes> out;
  const auto consider = [&](const Sizes& s) {
    const bool is_larger = shape.most_rows > 0 && s.groups * s.rows >= shape.most_rows + least_rows;
    if (fits(group, shape, s) && !(is_larger && s.groups * s.rows > least_rows)) out.push_back(s);
  };
  std::vector<int64_t> columns = {0};
  if (shape.has_cut) columns = tiles.columns;
  for (int64_t groups = 1; groups <= tiles.groups; ++groups) {
    if (shape.is_block && groups > 1) break;
    for (const int64_t column : columns) {
      Sizes s = least_sizes(*group.target);
      s.groups = groups;
      s.column = column;
      if (!shape.has_streamed_tile) {
        if (groups <= tiles.product_groups) consider(s);
        continue;
      }
      for (int64_t step = shape.is_deep ? tiles.deep_step : tiles.step; step <= tiles.most_step;
           step += group.target->matrix.depth) {
        s.step = step;
        consider(s);
        // Of a block of rows most rows of the tile may not exist: one group's latencies show.
        if (!shape.is_block) continue;
        s.resident = 2;
        consider(s);
        s.resident = 1;
      }
    }
  }
  // Groups that take turns at whole tiles: one group's results are written behind the other's
  // products.
  if (shape.has_product_alone && !shape.is_block && shape.has_cut) {
    for (const int64_t rows : tiles.whole_rows) {
      for (const int64_t column : tiles.whole_columns) {
        Sizes s = least_sizes(*group.target);
        s.rows = rows;
        s.column = column;
        consider(s);
      }
    }
    // Two tiles beside each other that load what both need once, where it pays: rows of operands
    // that are no whole lines.
    const size_t alone = group.target->limits.cluster_ctas > 1 ? out.size() : 0;
    for (size_t k = 0; k < alone; ++k) {
      Sizes s = out[k];
      s.cluster = 2;
      if (s.rows * s.groups >= tiles.cluster_extent && s.column >= tiles.cluster_extent)
        out.push_back(s);
    }
  }
  return out;
}

}  // namespace

bool has_fitting_sizes(const Group& group) { return !fitting_sizes(group).empty(); }

std::vector<Sizes> candidate_sizes(const Group& group) {
  std::vector<Sizes> out = fitting_sizes(group);
  if (out.empty()) out.push_back(choose_sizes(group));
  return out;
}

}  // namespace nautilus::schedule
