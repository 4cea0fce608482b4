// SPDX-License-Identifier: Apache-2.0
// Roles in which a few lanes of a warp have a tile of their own (`each ... lanes n`): all their
// register tiles are lines over so many lanes, and nothing asks other threads than those lanes, or
// takes them for one that has the same tile.
#include <fmt/format.h>

#include "ir/walk.h"
#include "matile/verify/verify_role.h"

namespace nautilus::matile {

using ir::Op;

namespace {

// Work of lanes for themselves, or of those that share a line.
bool is_of_lanes(Kind kind) {
  switch (kind) {
    case Kind::Let:
    case Kind::Set:
    case Kind::Fold:
    case Kind::Lanes:
    case Kind::Load:
    case Kind::Put:
    case Kind::Forget:
    case Kind::Unroll:
      return true;
    default:
      return false;
  }
}

}  // namespace

void RoleVerifier::lanes_of_rows(const Each& op) {
  if (!op.lanes) return;
  lanes_of_each_ = op.lanes;
  if (!is_compute() || role_->count.value_or(1) != 1 || op.alternate ||
      r_.tiles_of(op.tiles)->op->source == TileSource::Dynamic || r_.cluster > 1)
    v_.fail("lanes have static tiles in a role of one group, without a cluster");
  ir::for_each_op(op.body, [&](const Op& inner) {
    if (!is_of_lanes(kind(inner)))
      v_.fail(
          fmt::format("`{}` where lanes have tiles of their own: they only compute, exchange "
                      "among themselves, load and put",
                      inner.info().mnemonic()));
  });
}

void RoleVerifier::lanes_of_tiles() {
  for (const auto& [name, tile] : tiles_) {
    if (tile.op->lanes != lanes_of_each_)
      v_.fail(lanes_of_each_ ? fmt::format("`{}` is not over the {} lanes that have a tile of the "
                                           "kernel",
                                           name, *lanes_of_each_)
                             : fmt::format("`{}` is over lanes, which have no tiles of the kernel: "
                                           "`each ... lanes {}`",
                                           name, *tile.op->lanes));
  }
}

}  // namespace nautilus::matile
