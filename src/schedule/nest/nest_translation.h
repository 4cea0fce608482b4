// SPDX-License-Identifier: Apache-2.0
// Expressions of the fusion as the nest writes them: axes become places of tiles, members their
// tiles, and reads stay inside their tensors.
#pragma once

#include "schedule/nest/nest_frame.h"

namespace nautilus::schedule {

class NestTranslation {
 public:
  explicit NestTranslation(NestFrame& frame);

  Expr translated(Expr e, NestPhase phase);
  Expr member_value(size_t k, NestPhase phase);

 private:
  using Memo = std::unordered_map<Expr, Expr>;

  Expr translated(Expr e, NestPhase phase, Memo& memo);
  Expr new_translation(Expr e, NestPhase phase, Memo& memo);
  Expr member_value(size_t k, NestPhase phase, Memo& memo);

  // The number of a block of the axis, `k / 128`, that is the same in a whole tile; null if it is
  // none.
  Expr tile_block(Expr e);

  // The replacement of a conjunct of a mask may contain that conjunct.
  Expr instead_of(Expr other, NestPhase phase);

  // The condition that a place of a tile is inside the axes that an expression uses.
  Expr range_of(Expr e);

  // The condition that the first place of a tile is inside its axis; null: always.
  Expr begins_inside(const TileAxis& t);

  // The condition for one axis: its own range, or the end of the tensor. Rows and columns beyond
  // the range are never stored, so `X[i + r]` may read elements there.
  Expr in_tensor(Expr e, const TileAxis& t);

  NestFrame& f_;
  std::map<std::string, ir::TensorType, std::less<>> types_;  // of the program's buffers
};

}  // namespace nautilus::schedule
