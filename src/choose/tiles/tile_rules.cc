// SPDX-License-Identifier: Apache-2.0
#include "choose/tiles/tile_rules.h"

namespace nautilus::choose {

using decision::GroupKind;
using decision::Moment;
using decision::OperandPath;
using decision::OrderKind;
using decision::SourceKind;

// While one of two groups stores its tile, the other one's products run.
decision::Groups TileRules::groups(int64_t sharing, bool can_alternate) {
  constexpr int64_t kAlternating = 2;
  if (can_alternate) return {kAlternating, GroupKind::Alternating, {}};
  return {sharing, GroupKind::Sharing, {}};
}

// The longest tiles first leave short ones for the end; tiles that run together share operands in
// the second-level cache.
decision::TileOrder TileRules::order(const lower::GridFacts& facts) {
  if (facts.growing >= 0) {
    decision::TileOrder longest{OrderKind::Longest, {}, {}, {}};
    if (facts.shared_bytes) longest.section_mib = target_.memory.section_bytes >> 20;
    return longest;
  }
  if (facts.rows >= 0) return {OrderKind::Raster, target_.tiles.raster_rows, {}, {}};
  return {OrderKind::Plain, {}, {}, {}};
}

// A counter balances tiles of different lengths; others need none.
decision::TileSource TileRules::source(const decision::TileOrder& order) {
  return {order.kind == OrderKind::Longest ? SourceKind::Dynamic : SourceKind::Static, {}};
}

// A copy that is mostly padding costs more than it saves.
OperandPath TileRules::path(ir::Name tensor, int64_t columns, int64_t copied_columns) {
  const bool is_full = 2 * columns > copied_columns;
  return paths_.emplace(tensor.str(), is_full ? usual_path_ : OperandPath::Direct).first->second;
}

bool TileRules::is_whole(ir::Name tensor, int64_t row_bytes) {
  return wholes_.emplace(tensor.str(), row_bytes <= target_.tiles.taken_bytes).first->second;
}

// What the copy engine brings arrives while the step before computes.
Moment TileRules::fetch() {
  return usual_path_ == OperandPath::Copied ? Moment::Early : Moment::Late;
}

// Misses of what no other tile needs bring little more than that, and so do those of pieces of rows
// that are shorter, and of a cluster, whose CTAs each copy a part of it.
int64_t TileRules::promoted_bytes(const lower::CopyFacts& facts) {
  const target::Memory& memory = target_.memory;
  const bool is_short = facts.piece_bytes && *facts.piece_bytes < memory.promote_bytes;
  return facts.is_read_once || is_short || facts.has_cluster ? memory.line_bytes
                                                             : memory.promote_bytes;
}

}  // namespace nautilus::choose
