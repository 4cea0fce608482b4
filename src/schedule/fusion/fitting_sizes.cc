// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/fitting_sizes.h"

#include <algorithm>

#include "estimate/registers.h"
#include "schedule/fusion/tile_use.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

using expr::Op;

// Further properties of a fusion that decide which sizes are tried.
struct Shape : FusionShape {
  int64_t most_rows = 0;  // 0: not known
  bool is_block = false;
  bool is_deep = false;  // an operand needs so much shared memory that short steps are worthwhile
  // At the sizes that are asked for; 0: not known.
  int64_t columns = 0;  // of products alone and of sums of several
  int64_t depth = 0;    // of sums of several
};

Shape candidate_shape(const Fusion& fusion) {
  Shape s{shape_of(fusion)};
  for (const Dot& d : fusion.dots) {
    const Expr depth = fusion.extents.at(d.depth);
    s.is_deep |= d.depth != fusion.stream && depth.op() == Op::IntConst &&
                 depth.integer() > fusion.target->tiles.whole_extent;
  }
  const Expr rows = fusion.extents.at(fusion.row);
  if (rows.op() == Op::IntConst) s.most_rows = rows.integer();
  s.is_block = fusion.row_block > 0;
  for (const Dot& d : fusion.dots) {
    if (!fusion.has_several(d) && !s.has_product_alone) continue;
    const auto asked = [&](Expr axis) {
      const auto known = fusion.asked.find(axis);
      return known == fusion.asked.end() ? 0 : known->second;
    };
    s.columns = std::max(s.columns, asked(d.column));
    if (fusion.has_several(d)) s.depth = std::max(s.depth, asked(d.depth));
  }
  return s;
}

// Every instruction finds its registers when the CTA starts.
bool starts(const Fusion& fusion, const TileConfig& s) {
  const target::Target& target = *fusion.target;
  const estimate::Roles roles{s.warp_groups, true, s.resident > 1, s.resident};
  const int64_t given = target.limits.registers(static_cast<int>(roles.threads(target.limits)),
                                                static_cast<int>(s.resident));
  return std::all_of(fusion.dots.begin(), fusion.dots.end(), [&](const Dot& d) {
    return estimate::instruction_registers(tile_width(fusion, d.column, s), target) <= given;
  });
}

bool fits(const Fusion& fusion, const Shape& shape, const TileConfig& s) {
  const auto ctas = static_cast<int>(s.resident);
  return starts(fusion, s) &&
         tile_registers(fusion, s).all() <=
             most_tile_registers(fusion, s, shape.has_streamed_tile) &&
         shared_use(fusion, s).bytes() <= fusion.target->limits.shared_bytes(ctas);
}

class SizeSearch {
 public:
  explicit SizeSearch(const Fusion& fusion)
      : fusion_(fusion),
        shape_(candidate_shape(fusion)),
        tiles_(fusion.target->tiles),
        column_block_(fusion.column_block()) {}

  std::vector<TileConfig> run() {
    const std::vector<int64_t> columns = columns_of_tiles();
    for (int64_t groups = 1; groups <= tiles_.groups; ++groups) {
      if (shape_.is_block && groups > 1) break;
      for (const int64_t column : columns) {
        TileConfig s = least_sizes(fusion_);
        s.warp_groups = groups;
        s.column = column;
        shape_.has_streamed_tile ? steps_between_products(s) : steps_of_products(s);
      }
    }
    if (shape_.has_product_alone && !shape_.is_block && shape_.has_cut) taking_turns();
    return std::move(out_);
  }

 private:
  void consider(const TileConfig& s) {
    if (!is_step(fusion_, s.step) || (s.column > 0 && column_block_ % s.column != 0) ||
        s.column % fusion_.column_grain() != 0)
      return;
    const int64_t least_rows = fusion_.target->matrix.rows;
    const bool is_larger =
        shape_.most_rows > 0 && s.warp_groups * s.rows >= shape_.most_rows + least_rows;
    if (fits(fusion_, shape_, s) && !(is_larger && s.warp_groups * s.rows > least_rows))
      out_.push_back(s);
  }

  std::vector<int64_t> columns_of_tiles() const {
    std::vector<int64_t> columns = {0};
    if (shape_.has_cut) columns = tiles_.columns;
    for (const int64_t few : tiles_.few_columns) {
      if (shape_.has_cut && shape_.columns > 0 && shape_.columns <= few) columns.push_back(few);
    }
    return columns;
  }

  // Where a step has products alone.
  void steps_of_products(const TileConfig& s) {
    const int64_t groups = s.warp_groups;
    if (groups <= tiles_.product_groups) consider(s);
    if (has_few_columns(s, tiles_) && groups <= tiles_.product_groups) {
      TileConfig longer = s;
      longer.step = scaled_step(fusion_, tiles_.usual_steps.front());
      if (longer.step > s.step) consider(longer);
    }
    // Where taps are steps, channels may be few: short steps leave fewer of them empty.
    for (const int64_t usual : tiles_.tap_steps) {
      const int64_t step = scaled_step(fusion_, usual);
      const bool is_short = shape_.depth > 0 && shape_.depth <= step;
      if ((!shape_.has_taps && !is_short) || groups > tiles_.product_groups) continue;
      TileConfig taps = s;
      taps.step = step;
      consider(taps);
    }
  }

  // Where a step has register work between products.
  void steps_between_products(TileConfig s) {
    for (int64_t step = shape_.is_deep ? tiles_.deep_step : tiles_.step; step <= tiles_.most_step;
         step += fusion_.depth_grain()) {
      s.step = step;
      consider(s);
      // Of a block of rows most rows of the tile may not exist: one group's latencies show.
      if (!shape_.is_block) continue;
      s.resident = 2;
      consider(s);
      s.resident = 1;
    }
  }

  // Groups that alternate tiles: one group's results are written while the other's products run.
  void taking_turns() {
    for (const int64_t rows : tiles_.whole_rows) {
      for (const int64_t column : tiles_.whole_columns) {
        TileConfig s = least_sizes(fusion_);
        s.rows = rows;
        s.column = column;
        consider(s);
      }
    }
    // Two neighbouring tiles that load shared operands once, where it pays: rows of operands that
    // are not whole cache lines.
    const size_t alone = fusion_.target->limits.cluster_ctas > 1 ? out_.size() : 0;
    for (size_t k = 0; k < alone; ++k) {
      TileConfig s = out_[k];
      s.cluster = 2;
      if (s.rows * s.warp_groups >= tiles_.cluster_extent && s.column >= tiles_.cluster_extent)
        out_.push_back(s);
    }
  }

  const Fusion& fusion_;
  const Shape shape_;
  const target::Tiles& tiles_;
  const int64_t column_block_;
  std::vector<TileConfig> out_;
};

std::vector<TileConfig> fitting_sizes(const Fusion& fusion) { return SizeSearch(fusion).run(); }

}  // namespace

bool has_few_columns(const TileConfig& sizes, const target::Tiles& tiles) {
  return std::find(tiles.few_columns.begin(), tiles.few_columns.end(), sizes.column) !=
         tiles.few_columns.end();
}

bool has_fitting_sizes(const Fusion& fusion) { return !fitting_sizes(fusion).empty(); }

std::vector<TileConfig> candidate_sizes(const Fusion& fusion) {
  std::vector<TileConfig> out = fitting_sizes(fusion);
  if (out.empty()) out.push_back(choose_sizes(fusion));
  return out;
}

}  // namespace nautilus::schedule
