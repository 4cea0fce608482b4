// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel/last_tile_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::lower {

int64_t loads_of_step(const decision::LastTile& line, int64_t parts, int64_t tensors,
                      int64_t threads) {
  return parts * tensors * (line.points.value_or(0) / threads);
}

int64_t parts_of_step(const decision::LastTile& line, int64_t tensors, int64_t threads) {
  int64_t parts = line.parts.value_or(1);
  while (parts > 1 && loads_of_step(line, parts, tensors, threads) > line.loads.value_or(0))
    parts /= 2;
  return parts;
}

decision::LastTile reached(decision::LastTile line, const LastTileFacts& facts) {
  int64_t parts = 0;
  int64_t loads = 0;
  for (const int64_t tensors : facts.tensors) {
    const int64_t step = parts_of_step(line, tensors, facts.threads);
    parts = std::max(parts, step);
    loads = std::max(loads, loads_of_step(line, step, tensors, facts.threads));
  }
  if (parts == 0) return line;
  line.parts = parts;
  line.loads = loads;
  return line;
}

std::string refuse_last_tile(const decision::LastTile& line, const LastTileFacts& facts,
                             const target::Target& target) {
  const int64_t points = line.points.value_or(0);
  const int64_t parts = line.parts.value_or(0);
  const int64_t loads = line.loads.value_or(0);
  const int64_t most = target.limits.thread_registers;
  if (points < facts.threads || points % facts.threads != 0)
    return fmt::format("{} points are no multiple of {} threads", points, facts.threads);
  if (points / facts.threads > loads)
    return fmt::format("one part takes {} loads of a thread", points / facts.threads);
  if (parts < 1 || parts > most || loads > most)
    return fmt::format("parts and loads are 1 to {}, a thread's registers", most);
  const decision::LastTile have = reached(line, facts);
  if (have.parts != line.parts || have.loads != line.loads)
    return fmt::format("no loop over parts reaches it: they have at most {} parts and {} loads",
                       *have.parts, *have.loads);
  return "";
}

}  // namespace nautilus::lower
