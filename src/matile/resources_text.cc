// SPDX-License-Identifier: Apache-2.0
#include "matile/resources_text.h"

#include <fmt/format.h>

#include "ir/target_of.h"
#include "matile/resources.h"

namespace nautilus::matile {
namespace {

std::string kernel_text(const Kernel& kernel, const target::Target& target) {
  const Resources r = resources_of(kernel, target);
  std::string out =
      fmt::format("kernel {}: {} threads, {} bytes of shared memory of {}\n", kernel.name.str(),
                  r.threads, r.shared_bytes, target.limits.cta_shared_bytes);
  for (const RingInfo& ring : r.rings) {
    out += fmt::format("  ring {} at {}: {} of {} bytes", ring.op->name.str(), ring.offset,
                       diag::counted(static_cast<size_t>(ring.slots()), "slot", "slots"),
                       ring.slot_bytes);
    if (ring.copies > 1) out += fmt::format(", {} copies", ring.copies);
    out += fmt::format(", filled by {}\n", ring.filler ? ring.filler->name.str() : "nobody");
    for (const SlotTileInfo& slot_tile : ring.slot_tiles)
      out += fmt::format("    slot tile {} at {}: {} bytes\n", slot_tile.op->name.str(),
                         slot_tile.offset, slot_tile.tile.bytes());
    out += fmt::format("    barriers at {}: {} full (1 arrival and the bytes), {} empty ({})\n",
                       ring.barriers, ring.copies * ring.slots(), ring.copies * ring.slots(),
                       diag::counted(static_cast<size_t>(ring.readers), "arrival", "arrivals"));
  }
  for (const StageInfo& stage : r.stages) {
    out += fmt::format("  stage {} at {}: {} of {} bytes for each group of {}",
                       stage.op->name.str(), stage.offset,
                       diag::counted(static_cast<size_t>(stage.buffers()), "buffer", "buffers"),
                       stage.tile.bytes(), stage.op->role.str());
    out += stage.op->ring ? fmt::format(", on ring {}\n", stage.op->ring.str()) : "\n";
  }
  for (const TilesInfo& tiles : r.tiles) {
    if (tiles.op->source != TileSource::Dynamic) continue;
    out += fmt::format("  tiles {}: fetched by {}, numbers at {}, barriers at {} ({} arrivals)\n",
                       tiles.op->name.str(), tiles.fetcher ? tiles.fetcher->name.str() : "nobody",
                       tiles.values, tiles.barriers, tiles.readers);
  }
  for (const TurnInfo& turn : r.turns) {
    out += fmt::format("  turn {}: named barriers {} to {}\n", turn.op->name.str(), turn.barrier,
                       turn.barrier + turn.groups - 1);
  }
  for (const RoleInfo& role : r.roles) {
    out += fmt::format("  role {}: {} registers", role.op->name.str(), role.op->regs.value_or(0));
    if (role.is_compute()) {
      out += fmt::format(", warp groups {} to {}, named barriers {} to {}", role.first_group,
                         role.first_group + role.groups() - 1, role.sync,
                         role.sync + role.groups() - 1);
    }
    if (role.scratch_bytes)
      out += fmt::format(", {} bytes at {} between warps", 2 * role.groups() * role.scratch_bytes,
                         role.scratch);
    if (role.meeting_bytes)
      out += fmt::format(", {} bytes at {} between groups, named barrier {}",
                         2 * role.meeting_bytes, role.meeting, role.meeting_sync);
    out += "\n";
  }
  out += fmt::format("  registers: launched with {} a thread{}\n", r.launch_registers(),
                     r.moves_registers() ? ", moved between roles" : "");
  return out;
}

}  // namespace

std::string resources_text(const ir::Program& program) {
  std::string out;
  for (const ir::Op& op : program.body) {
    if (const auto* kernel = op.get<Kernel>()) out += kernel_text(*kernel, ir::target_of(program));
  }
  return out;
}

}  // namespace nautilus::matile
