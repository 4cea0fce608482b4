// SPDX-License-Identifier: Apache-2.0
// The loop of a nest over its steps: the tiles of a step, and reductions that are rolled over the
// steps by their recurrences (fusion/recurrence.h).
#pragma once

#include "schedule/nest/moving_sums.h"
#include "schedule/nest/nest_terms.h"

namespace nautilus::schedule {

class RollingLoop {
 public:
  RollingLoop(NestFrame& frame, NestTranslation& translation, NestTerms& terms, MovingSums& moving)
      : f_(frame),
        translation_(translation),
        terms_(terms),
        moving_(moving),
        kept_(frame.members().size()) {}

  // What a rolled member starts with, before the loop.
  void start(size_t k, ir::Block& out);

  // The loop; the body alone where one step has the whole axis.
  void emit(ir::Block& out);

 private:
  void roll(size_t k, ir::Block& out, ir::Block& commits, std::vector<algebra::Moved>& moved);
  // A term of a rolled member, relative to the references of this step.
  Expr term(size_t k, ir::Block& out);

  bool is_read_in_loop(size_t k);
  // The condition that no extreme moved that the terms must attain; null: the terms attain none.
  Expr is_still_attained(const Recurrence& recurrence);
  // The factor is computed once for all members that share it.
  LocalTile repair_tile(Expr factor, ir::Block& out);

  void note_steps();

  NestFrame& f_;
  NestTranslation& translation_;
  NestTerms& terms_;
  MovingSums& moving_;
  std::vector<Expr> kept_;  // what a running member keeps of the steps before
  std::vector<std::pair<Expr, LocalTile>> repairs_;
};

}  // namespace nautilus::schedule
