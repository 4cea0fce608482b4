// SPDX-License-Identifier: Apache-2.0
// The lines of a kernel of tiles that its lowering to MA-tile reads, as far as the schedule does
// not say them: `groups`, `order`, `source`, `bring`, `whole`, `fetch`, `promote`.
//
//   par m < ..., n < ... grid              par m < ..., n < ... grid
//     decisions                              decisions
//       order plain                   ->       order plain
//     ...                                      groups 2 alternating; source static; promote A 128
//                                            ...
//
// Which of them a nest has, and what is known where they are asked for, its lowering says itself:
// it runs once with the rules as its answers (tile_rules.h). Test: test/choose/tile_lines.vrtile
#pragma once

#include <optional>
#include <string>

#include "decision/decisions.h"
#include "ir/pass.h"

namespace nautilus::choose {

// The nest with all of its lines. Nothing, and why, if it has no kernel: a line cannot be followed,
// or some op has no counterpart. `usual_path`: how boxes arrive that only element-wise work uses,
// where no line says it.
std::optional<ir::Op> with_tile_lines(const ir::Program& tiles, const ir::Op& nest,
                                      decision::OperandPath usual_path, ir::PassContext& context,
                                      std::string* why);

// Every nest of a program, with boxes that are copied.
std::optional<ir::Program> choose_tile_lines(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::choose
