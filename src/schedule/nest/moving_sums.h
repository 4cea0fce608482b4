// SPDX-License-Identifier: Apache-2.0
// Rolled sums of polynomials relative to moving references (algebra/moments.h): the sums of the
// derivatives, which move a sum from one reference to the next, and the references themselves.
#pragma once

#include <functional>

#include "schedule/nest/nest_translation.h"
#include "schedule/nest/stream_guards.h"

namespace nautilus::schedule {

// Only for rolled members with a shift in their recurrence.
class MovingSums {
 public:
  MovingSums(NestFrame& frame, NestTranslation& translation, StreamGuards& guards)
      : f_(frame), translation_(translation), guards_(guards), moving_(frame.members().size()) {}

  // Before the loop.
  void start(size_t k, ir::Block& out);

  // The references after this step, and the member's own sum relative to them.
  Expr move(size_t k, ir::Block& out, ir::Block& commits);

  // The sums of the derivatives; each needs the old values of those of higher order.
  void roll_moments(size_t k, const std::function<Expr(Expr)>& repaired, ir::Block& out);

  // A term of the member, or a derivative of it, relative to the new references.
  Expr term(size_t k, size_t moment);

  // After the loop: extrapolated values are replaced by the final ones.
  void settle(size_t k, ir::Block& out);

 private:
  struct Moving {
    std::vector<LocalTile> sums;  // of the derivatives, the member's own sum first
    std::vector<LocalTile> references;
    std::vector<LocalTile> next;
    std::vector<Expr> steps;
  };

  std::vector<Expr> sums_of(size_t k);
  Expr value_of(size_t k, size_t moment);

  // Places of the streamed axis in this step, and of all axes that are reduced together.
  Expr places_in_step(expr::DType dtype);
  Expr all_places(expr::DType dtype);

  NestFrame& f_;
  NestTranslation& translation_;
  StreamGuards& guards_;
  std::vector<Moving> moving_;
  std::optional<LocalTile> seen_;  // number of places of the streamed axis
  std::optional<LocalTile> new_seen_;
};

}  // namespace nautilus::schedule
