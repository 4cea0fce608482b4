// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/registers/split_tile_reductions.h"

#include <fmt/format.h>

#include "expr/walk.h"
#include "layout/convert.h"
#include "matile/resources.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

struct Parts {
  bool has_lanes = false;
  bool has_warps = false;
};

// The exchanges that a reduction needs; nothing if no tile is read with exactly its axes.
std::optional<Parts> parts_of(const Reduce& op,
                              const std::map<std::string, Tile, std::less<>>& tiles) {
  const Expr value = op.value;
  if (value.op() != EK::Reduce) return std::nullopt;
  std::map<std::string, bool, std::less<>> is_reduced;
  for (const ir::Axis& a : op.axes) is_reduced.emplace(a.name.str(), false);
  for (size_t k = 0; k < value.axis_count(); ++k)
    is_reduced.emplace(value.axis(k).name().str(), true);
  std::optional<Parts> found;
  expr::for_each(value.body(), [&](Expr e) {
    if (found || e.op() != EK::Read || e.args().size() != is_reduced.size()) return;
    const auto tile = tiles.find(e.name().str());
    if (tile == tiles.end()) return;
    layout::Layout layout = layout_of(tile->second);
    Parts parts;
    for (size_t k = e.args().size(); k-- > 0;) {
      const auto axis =
          e[k].op() == EK::Var ? is_reduced.find(e[k].name().str()) : is_reduced.end();
      if (axis == is_reduced.end()) return;
      if (!axis->second) continue;
      const layout::Reduction r = layout::drop_axis(layout, static_cast<int>(k));
      parts.has_lanes |= !r.lane_masks.empty();
      parts.has_warps |= r.warps > 1;
      layout = r.result;
    }
    found = parts;
  });
  return found;
}

}  // namespace

std::optional<ir::Program> split_tile_reductions(const ir::Program& program,
                                                 ir::PassContext& context) {
  return map_nests(program, [&](const Kernel& kernel, const Role& role) -> std::optional<Role> {
    const auto tiles = declared_tiles(role);
    bool ok = true;
    Role out = role;
    out.body = map_blocks(role.body, [&](ir::Block block) {
      ir::Block ops;
      for (Op& op : block) {
        const auto* r = op.get<Reduce>();
        if (!r) {
          ops.push_back(std::move(op));
          continue;
        }
        const auto parts = parts_of(*r, tiles);
        if (!parts) {
          ok = false;
          context.sink.report(
              diag::Code::NotVerified, op.span(),
              fmt::format(
                  "kernel `{}`: the reduction into `{}` reads no tile with exactly its axes",
                  kernel.name.str(), r->target.str()));
          continue;
        }
        ops.push_back(ir::make(Fold{r->target, r->axes, r->value}, op.span()));
        if (parts->has_lanes) ops.push_back(ir::make(Lanes{r->target, r->value.reducer()}));
        if (parts->has_warps) ops.push_back(ir::make(Warps{r->target, r->value.reducer()}));
      }
      return ops;
    });
    if (!ok) return std::nullopt;
    return out;
  });
}

}  // namespace nautilus::matile
