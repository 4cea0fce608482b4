// SPDX-License-Identifier: Apache-2.0
// Sizes of tiles of a kernel with a split streamed axis.
//
//   time = max(rounds * (steps of a part * step + once), operands / memory)
//        + parts * states * 8 bytes / memory          written once and read once
//        + another kernel, or parts * states of a tile read by the last one
//
// Smaller tiles need fewer parts to fill the machine, so that fewer states pass through memory; but
// they load more for every product.
#pragma once

#include "schedule/choose/candidates.h"

namespace nautilus::schedule {

struct PartTime {
  double cycles = 0;
  int64_t parts = 1;
  bool is_product_alone = true;  // no register work in its steps
};

// A kernel with parts that it may have; its own split is not looked at.
struct KernelInParts {
  const Kernel& kernel;
  const Split& split;
  const ir::Program& program;
  const Target& target;
  expr::ExprPool& pool;
};

// The time of a kernel with these sizes and parts at the program's hints; nothing where sizes are
// not known.
std::optional<PartTime> time_in_parts(const KernelInParts& of, const TileConfig& sizes);

// For a kernel of products alone: the sizes with the least time at the program's hints; `usual` for
// other kernels, and where no sizes are much better. `why`: for people, added to.
TileConfig sizes_in_parts(const KernelInParts& of, const TileConfig& usual, std::string* why);

// Whether products alone take less time without parts, with sizes that the kernel keeps, at the
// sizes that are asked for: a machine with idle multiprocessors may still wait for memory.
bool is_whole_faster(const KernelInParts& of, const TileConfig& sizes);

// Whether the last tile combines the parts in less time than another kernel, at the program's
// hints. Where sizes have no hints, or one part is enough, the value of the split.
bool is_last_tile_faster(const KernelInParts& of, const TileConfig& sizes);

}  // namespace nautilus::schedule
