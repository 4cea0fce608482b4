// SPDX-License-Identifier: Apache-2.0
#include "lower/tile_path.h"

#include "lower/scalar_to_vrtile.h"
#include "lower/vrtile_to_matile.h"
#include "scalar/ops.h"
#include "vrtile/ops.h"
#include "vrtile/passes/standard.h"

namespace nautilus::lower {

std::optional<KernelParts> lower_grid_nest(const ir::Program& program, const ir::Op& nest,
                                           std::string_view name, FreshNames& names,
                                           ir::PassContext& context, std::string* why) {
  // What a stage refuses is a reason here, no error: the caller has another way.
  diag::Sink sink(context.sink.sources());
  ir::Block decided;
  ir::PassContext own = context.with(sink, decided);
  auto tiles = nest_to_vrtile(program, nest, own);
  if (tiles) tiles = vrtile::run_standard_passes(*tiles, own);
  if (!tiles) {
    *why = sink.all().empty() ? "a pass of the tile level refused it" : sink.all()[0].message;
    return std::nullopt;
  }
  const auto* grid = nest.get<scalar::For>();
  for (const ir::Op& op : tiles->body) {
    if (!op.is<vrtile::Par>()) continue;
    auto parts = lower_tile_nest(
        *tiles, op, name, names, own, why,
        grid ? Beside{grid->cluster.value_or(1), grid->resident.value_or(1)} : Beside{});
    if (parts && context.decided)
      context.decided->insert(context.decided->end(), decided.begin(), decided.end());
    return parts;
  }
  *why = "nothing of it is left";
  return std::nullopt;
}

}  // namespace nautilus::lower
