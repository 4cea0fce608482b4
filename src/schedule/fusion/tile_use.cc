// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/tile_use.h"

#include <algorithm>

#include "estimate/registers.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

using expr::Op;

constexpr int64_t kComputedBytes = 2;  // of an operand of products that the kernel computes

int64_t padded(int64_t n, int64_t grain) { return (n + grain - 1) / grain * grain; }

// Tensors of floats along the streamed axis alone that work between products reads.
int64_t streamed_lines(const Fusion& fusion) {
  std::unordered_set<Expr> seen;
  for (size_t k = 0; k < fusion.members.size(); ++k) {
    if (fusion.dot_of(k)) continue;
    expr::for_each(fusion.members[k].value, [&](Expr x) {
      const bool is_one = x.op() == Op::Read && !fusion.find(x) && expr::is_float(x.dtype()) &&
                          expr::depends_on(x, fusion.stream) && !expr::depends_on(x, fusion.row);
      if (is_one) seen.insert(x);
    });
  }
  return static_cast<int64_t>(seen.size());
}

// Among the elements that first operands are computed from, boxes of 16 bits with contiguous rows:
// transposed on their way to registers.
void add_transposed_boxes(const Fusion& fusion, const TileConfig& s, Expr value,
                          std::unordered_set<Expr>& seen, std::vector<estimate::RingUse>& out) {
  expr::for_each(value, [&](Expr x) {
    const bool is_half = x.op() == Op::Read && !x.args().empty() && expr::is_half(x.dtype());
    if (!is_half || fusion.find(x) || !expr::depends_on(x.args().back(), fusion.row)) return;
    if (!expr::depends_on(x, fusion.stream) || !seen.insert(x).second) return;
    const int64_t step = padded(s.step, fusion.depth_grain());
    out.push_back({s.rows * step * expr::bytes(x.dtype()), 2, s.warp_groups});
  });
}

// Tensors that element-wise work reads in boxes: two slots for those of a step, a panel for those
// before results.
void add_boxes(const Fusion& fusion, const TileConfig& s, std::vector<estimate::RingUse>& out) {
  std::unordered_set<Expr> seen;
  for (size_t k = 0; k < fusion.members.size(); ++k) {
    const Dot* dot = fusion.dot_of(k);
    if (!dot) add_transposed_boxes(fusion, s, fusion.members[k].value, seen, out);
    if (dot && !dot->has_stored_rows()) {
      for (Expr f : dot->a) add_transposed_boxes(fusion, s, f, seen, out);
    }
    if (dot) continue;
    expr::for_each(fusion.members[k].value, [&](Expr x) {
      if (x.op() != Op::Read || fusion.find(x) || x.args().empty() || !seen.insert(x).second)
        return;
      const Expr column = x.args().back();
      const bool is_float = expr::is_float(x.dtype()) && expr::bytes(x.dtype()) >= 2;
      if (!is_float || column == fusion.row || !fusion.is_tile_axis(column)) return;
      const bool has_row =
          std::find(x.args().begin(), x.args().end(), fusion.row) != x.args().end();
      if (!has_row) return;
      const bool is_streamed = column == fusion.stream;
      const int64_t panel = fusion.target->copies.panel_columns();
      const int64_t columns = is_streamed ? padded(tile_width(fusion, column, s), panel) : panel;
      out.push_back(
          {s.rows * columns * expr::bytes(x.dtype()), is_streamed ? 2 : 1, s.warp_groups});
    });
  }
}

// Whether an operand that stays for all steps is as large as a result with these columns.
bool has_operand_like(const Fusion& fusion, Expr column, const TileConfig& s) {
  return std::ranges::any_of(fusion.dots, [&](const Dot& d) {
    return d.has_stored_rows() && d.depth != fusion.stream &&
           !expr::depends_on(d.a[0], fusion.stream) && d.operand_bytes() == kComputedBytes &&
           tile_width(fusion, d.depth, s) == tile_width(fusion, column, s);
  });
}

// Whether results of 16 bits can lie where such an operand was. Those of a part of the columns are
// stored panel by panel, from a place of their own.
bool have_place_of_operand(const Fusion& fusion, const TileConfig& s) {
  for (const Member& m : fusion.members) {
    if (expr::bytes(m.dtype) != kComputedBytes || m.has(fusion.stream) || !m.has(fusion.row))
      continue;
    for (Expr a : fusion.tile_axes(m)) {
      if (a != fusion.row && !(fusion.is_whole(a) && has_operand_like(fusion, a, s))) return false;
    }
  }
  return true;
}

}  // namespace

FusionShape shape_of(const Fusion& fusion) {
  FusionShape s;
  for (size_t k = 0; k < fusion.members.size(); ++k) {
    const Member& m = fusion.members[k];
    const Dot* d = fusion.dot_of(k);
    s.has_streamed_tile |= m.has(fusion.stream) && d;
    s.has_product_alone &= !m.is_rolled || (d && d->has_stored_rows());
    s.sums += m.is_rolled && d ? 1 : 0;
    for (Expr a : fusion.tile_axes(m))
      s.has_cut |= a != fusion.row && a != fusion.stream && !fusion.is_whole(a);
  }
  s.has_product_alone &= !s.has_streamed_tile;
  s.has_taps = !fusion.outer.empty() && s.has_product_alone &&
               std::all_of(fusion.outer.begin(), fusion.outer.end(),
                           [&](Expr a) { return fusion.extents.at(a).op() == Op::IntConst; });
  return s;
}

int64_t tile_width(const Fusion& fusion, Expr axis, const TileConfig& sizes) {
  if (axis == fusion.stream) return sizes.step;
  return fusion.is_whole(axis) ? padded(fusion.extents.at(axis).integer(), fusion.depth_grain())
                               : sizes.column;
}

TileRegisters tile_registers(const Fusion& fusion, const TileConfig& s) {
  const auto held = [&](int64_t columns, int64_t bytes) {
    return estimate::tile_registers(s.rows * columns, bytes, fusion.target->limits);
  };
  // A product or a value, and its rounded copy as operand.
  const auto with_copy = [&](int64_t columns) {
    return held(columns, expr::bytes(expr::DType::F32)) + held(columns, kComputedBytes);
  };
  TileRegisters out;
  bool has_computed = false;
  for (const Dot& d : fusion.dots) {
    const int64_t columns = tile_width(fusion, d.column, s);
    has_computed |= !d.has_stored_rows() || fusion.by_name(d.row_element.name());
    if (&d != fusion.dot_of(d.member)) continue;
    if (fusion.members[d.member].is_rolled) {
      const int64_t tile = held(columns, expr::bytes(expr::DType::F32));
      out.sums += fusion.is_added_apart(d) ? 2 * tile : tile;
    } else {
      out.step += with_copy(columns);
    }
  }
  if (out.step > 0) {
    out.lines = streamed_lines(fusion) * estimate::column_registers(s.step);
  } else if (has_computed) {
    out.step = with_copy(s.step);
  }
  return out;
}

int64_t most_tile_registers(const Fusion& fusion, const TileConfig& s, bool is_mixed) {
  const target::Target& target = *fusion.target;
  const bool is_shared = s.resident > 1;
  const int64_t budget =
      estimate::compute_registers({s.warp_groups, true, is_shared, s.resident}, target);
  const bool reserves_more = is_mixed && s.warp_groups <= target.tiles.product_groups && !is_shared;
  return budget - (reserves_more ? target.tiles.spare.mixed : target.tiles.spare.tried);
}

estimate::SharedUse shared_use(const Fusion& fusion, const TileConfig& s) {
  const target::Target& target = *fusion.target;
  // One slot is filled while another is read.
  constexpr int64_t kLeastSlots = 2;
  const int64_t slots = s.resident > 1 ? target.tiles.resident_slots : kLeastSlots;
  estimate::SharedUse out;
  out.other_bytes = target.tiles.barrier_bytes;
  const auto tile = [&](int64_t rows, int64_t columns, int64_t bytes) {
    return estimate::bytes_to_next_tile(rows * columns * bytes, target.copies);
  };
  // With shorter steps no operand is large enough to hold results.
  const bool are_held =
      s.step >= scaled_step(fusion, target.tiles.step) && have_place_of_operand(fusion, s);
  estimate::StageUse results{0, 1, s.warp_groups, are_held};
  std::unordered_set<Expr> seen;  // operands that several products have in common
  for (const Dot& d : fusion.dots) {
    const int64_t columns = tile_width(fusion, d.column, s);
    const int64_t depth = tile_width(fusion, d.depth, s);
    const int64_t bytes = d.operand_bytes();
    const bool is_streamed = d.depth == fusion.stream || d.column == fusion.stream;
    const bool is_alone = !fusion.has_several(d);
    if (is_alone || seen.insert(d.b).second)
      out.rings.push_back({tile(columns, depth, bytes), is_streamed ? slots : 1, 1});
    if (d.has_stored_rows() && (is_alone || seen.insert(d.a[0]).second)) {
      const bool has_stream = expr::depends_on(d.a[0], fusion.stream);
      out.rings.push_back({tile(s.rows, depth, bytes), has_stream ? slots : 1, s.warp_groups});
    }
    if (fusion.members[d.member].is_rolled)
      results.tile_bytes =
          std::max(results.tile_bytes,
                   tile(s.rows, std::min(columns, target.tiles.stage_columns), kComputedBytes));
  }
  out.stages.push_back(results);
  add_boxes(fusion, s, out.rings);
  return out;
}

}  // namespace nautilus::schedule
