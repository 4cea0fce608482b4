// SPDX-License-Identifier: Apache-2.0
// The resources of a kernel, derived from its declarations and roles: shared memory, barriers and
// their arrival counts, threads, named barriers. The text has none of these, so it cannot
// contradict them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimate/shared_memory.h"
#include "layout/digits.h"
#include "layout/swizzle.h"
#include "matile/ops.h"

namespace nautilus::target {
struct Target;
}

namespace nautilus::matile {

struct SlotTileInfo {
  const SlotTile* op = nullptr;
  layout::PanelTile tile;
  int offset = 0;  // within the slot
};

struct RingInfo {
  const Ring* op = nullptr;
  std::vector<SlotTileInfo> slot_tiles;
  int slot_bytes = 0;
  int copies = 1;    // one per group of the role it belongs to
  int offset = 0;    // of slot 0 of copy 0 in shared memory
  int barriers = 0;  // of copy 0: full barriers, then empty ones, 8 bytes each
  int readers = 0;   // warps that release each slot, in all CTAs that fill it
  // Number of CTAs that load into each slot: all of the cluster, if a copy multicasts.
  int ctas = 1;
  const Role* filler = nullptr;

  int slots() const { return static_cast<int>(*op->slots); }
  estimate::RingUse use() const { return {slot_bytes, slots(), copies}; }
  int copy_bytes() const { return slots() * slot_bytes; }
  int barrier_bytes() const { return static_cast<int>(use().barrier_bytes()); }
};

struct StageInfo {
  const Stage* op = nullptr;
  layout::PanelTile tile;
  int offset = 0;  // of buffer 0 of group 0

  int buffers() const { return static_cast<int>(*op->buffers); }
  estimate::StageUse use(int groups, const target::Copies& tiles) const {
    return {estimate::bytes_to_next_tile(tile.bytes(), tiles), buffers(), groups,
            static_cast<bool>(op->ring)};
  }
};

struct TurnInfo {
  const Turn* op = nullptr;
  int barrier = 0;  // first of `groups` named barriers
  int groups = 0;
};

// The ring through which a dynamic tile number reaches the roles: two slots of four bytes.
struct TilesInfo {
  const Tiles* op = nullptr;
  const Role* fetcher = nullptr;
  int barriers = 0;
  int values = 0;
  int readers = 0;
};

struct RoleInfo {
  const Role* op = nullptr;
  int first_group = 0;  // warp group of the CTA
  int sync = 0;         // named barrier of group 0 of the role; one per group
  // Shared memory of `warps` for group 0: two buffers, used alternately, so that one barrier per
  // reduction is enough.
  int scratch = 0;
  int scratch_bytes = 0;  // of one buffer; 0 if the role has no such reduction
  // Shared memory of `groups` for all groups of the role: two buffers of a word for each group.
  int meeting = 0;
  int meeting_bytes = 0;  // of one buffer; 0 without `groups`
  int meeting_sync = 0;   // named barrier
  // Shared memory of `ctas`: two buffers of a word for each CTA of the cluster.
  int cluster_meeting = 0;
  int cluster_meeting_bytes = 0;  // of one buffer; 0 without `ctas`
  bool is_compute() const { return op->unit == RoleUnit::Groups; }
  int groups() const { return is_compute() ? static_cast<int>(*op->count) : 1; }
};

// The share of a multicast slot tile that one CTA of a cluster copies: equally many panels, or rows
// where there is one panel.
struct Share {
  size_t axis = 0;  // of the map
  int extent = 0;   // of the box along that axis
  int bytes = 0;
};

struct Resources {
  const target::Target* target = nullptr;
  std::vector<RingInfo> rings;
  std::vector<StageInfo> stages;
  std::vector<TurnInfo> turns;
  std::vector<TilesInfo> tiles;
  std::vector<RoleInfo> roles;
  int threads = 0;
  int resident = 1;  // CTAs on one multiprocessor, at least
  int cluster = 1;   // CTAs
  int shared_bytes = 0;
  int tickets = 0;  // four bytes for each group of the CTA
  int named_barriers = 1;

  // Registers per thread that the CTA is launched with.
  int launch_registers() const;
  // True if a role wants more than that, so that the loading roles have to give up some.
  bool moves_registers() const;

  const RingInfo* ring(ir::Name name) const;
  // The ring and the slot tile of that name.
  std::pair<const RingInfo*, const SlotTileInfo*> slot_tile(ir::Name name) const;
  const StageInfo* stage(ir::Name name) const;
  const TurnInfo* turn(ir::Name name) const;
  const TilesInfo* tiles_of(ir::Name name) const;
  const RoleInfo* role(ir::Name name) const;
};

// The kernel must have verified declarations; the result says what they cost, not whether it fits.
Resources resources_of(const Kernel& kernel, const target::Target& target);

// Nothing if the slot tile does not divide into this many shares of whole swizzle atoms.
std::optional<Share> share_of(const SlotTileInfo& slot_tile, int ctas);

layout::Swizzle swizzle_of(MapSwizzle swizzle);
// rows x cols elements in panels.
layout::PanelTile panel_tile(const ir::TensorType& type, MapSwizzle swizzle);

// The register layout of a tile. Rows beyond 64 repeat the accumulator in registers.
layout::Layout layout_of(const Tile& tile);
// How many lanes of a warp hold different elements of a tile.
int distinct_lanes(const layout::Layout& layout);
// Registers of a thread that hold its elements of a tile.
int64_t registers_of(const Tile& tile);
// Tiles that are live during the products of a block: accumulators, and first operands in
// registers. Other tiles are short-lived and reuse registers.
std::map<std::string, const Tile*, std::less<>> product_tiles(const Role& role,
                                                              const ir::Block& block);
int64_t product_registers(const Role& role, const ir::Block& block);
// Static shape of a tile or slot tile; 0 where a dimension is not a constant.
std::vector<int> static_shape(const ir::TensorType& type);

}  // namespace nautilus::matile
