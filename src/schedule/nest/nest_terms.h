// SPDX-License-Identifier: Apache-2.0
// Tiles that are not rolled: element-wise ones and reductions along an inner axis; and the terms of
// reductions.
#pragma once

#include "schedule/nest/nest_translation.h"
#include "schedule/nest/stream_guards.h"

namespace nautilus::schedule {

class NestTerms {
 public:
  NestTerms(NestFrame& frame, NestTranslation& translation, StreamGuards& guards)
      : f_(frame), translation_(translation), guards_(guards) {}

  // The value a reduction adds for one place of a tile. A computed operand of a contraction gets a
  // tile of its own, in `out`.
  Expr term(size_t k, Expr axis, ir::Block& out, NestPhase phase);

  // The tile of a member that is not rolled.
  void tile(size_t k, ir::Block& out, NestPhase phase);

 private:
  NestFrame& f_;
  NestTranslation& translation_;
  StreamGuards& guards_;
};

}  // namespace nautilus::schedule
