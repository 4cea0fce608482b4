// SPDX-License-Identifier: Apache-2.0
#include "choose/tiles/choose_tile_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "choose/tiles/tile_rules.h"
#include "decision/lines.h"
#include "ir/target_of.h"
#include "lower/tiles/vrtile_to_matile.h"
#include "vrtile/ops.h"

namespace nautilus::choose {

std::optional<ir::Op> with_tile_lines(const ir::Program& tiles, const ir::Op& nest,
                                      decision::OperandPath usual_path, ir::PassContext& context,
                                      std::string* why) {
  TileRules rules(ir::target_of(tiles), usual_path);
  lower::FreshNames names(context.pool);
  lower::tile_declarations(tiles, names, context.pool);
  ir::Block decided;
  ir::PassContext asking = context.with(context.sink, decided);
  if (!lower::lower_tile_nest({tiles, nest, tiles.name}, &rules, names, asking, why))
    return std::nullopt;
  auto grid = nest.as<vrtile::Par>();
  ir::Block lines = decision::lines(grid.body);
  const size_t given = lines.size();
  for (const ir::Op& line : decided) {
    const bool is_given = std::any_of(
        lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(given), [&](const ir::Op& own) {
          return !own.is<decision::Cost>() && decision::is_about_the_same(own, line);
        });
    if (!is_given) lines.push_back(line);
  }
  grid.body = decision::with_lines(std::move(grid.body), lines);
  return ir::make(std::move(grid), nest.span());
}

std::optional<ir::Program> choose_tile_lines(const ir::Program& program, ir::PassContext& context) {
  ir::Program out = program;
  for (ir::Op& op : out.body) {
    if (!op.is<vrtile::Par>()) continue;
    std::string why;
    const size_t messages = context.sink.all().size();
    const auto nest = with_tile_lines(program, op, decision::OperandPath::Copied, context, &why);
    if (!nest) {
      // A line that is refused has a message of its own.
      if (context.sink.all().size() == messages)
        context.sink.report(diag::Code::BadPass, op.span(),
                            fmt::format("this nest is no kernel of tiles: {}", why));
      return std::nullopt;
    }
    op = *nest;
  }
  return out;
}

}  // namespace nautilus::choose
