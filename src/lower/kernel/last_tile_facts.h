// SPDX-License-Identifier: Apache-2.0
// What is known of a tile that puts parts together (last_tile.h), and what a line about it comes
// to: the scheduler and the lowering count in the same way.
#pragma once

#include <string>
#include <vector>

#include "decision/grid_lines.h"
#include "target/target.h"

namespace nautilus::lower {

struct LastTileFacts {
  int64_t elements = 0;          // of the tile, at most
  int64_t threads = 0;           // of a group, which share them
  std::vector<int64_t> tensors;  // that each loop over parts reads
};

// Loads of a thread for one step of a loop over parts of so many tensors.
int64_t loads_of_step(const decision::LastTile& line, int64_t parts, int64_t tensors,
                      int64_t threads);
// Parts of such a step: as many as the loads under way allow.
int64_t parts_of_step(const decision::LastTile& line, int64_t tensors, int64_t threads);

// The line with what the loops reach: the most parts of a step, the most loads of a thread.
decision::LastTile reached(decision::LastTile line, const LastTileFacts& facts);

// Why the tile cannot be as the line says; empty if it can.
std::string refuse_last_tile(const decision::LastTile& line, const LastTileFacts& facts,
                             const target::Target& target);

}  // namespace nautilus::lower
