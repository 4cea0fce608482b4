// SPDX-License-Identifier: Apache-2.0
// How threads of a kernel of points work where no line says so.
#pragma once

#include "lower/kernel/point_answers.h"
#include "target/target.h"

namespace nautilus::choose {

class PointRules : public lower::PointAnswers {
 public:
  PointRules(const target::Target& target, expr::ExprPool& pool) : target_(target), pool_(pool) {}

  int64_t threads(int64_t lanes) override;
  int64_t scan_lanes() override;
  int64_t scan_each(int64_t vector) override;
  int64_t lines_across() override;
  ir::Names axes_of_terms(const lower::MapNest& terms) override;
  int64_t private_ctas(int64_t threads) override;
  decision::First first(int64_t element_bytes) override;
  lower::SortShape sort(expr::Expr count) override;
  decision::Merge merge(int64_t kept) override;
  int64_t turns(const lower::TurnFacts& facts) override;
  int64_t windows(const matile::Kernel& kernel) override;
  int64_t resident(const matile::Kernel& kernel, int64_t threads) override;
  std::vector<ir::Block> part_alternatives() override;
  std::optional<decision::Serves> serves(const lower::ServedFacts& facts) override;
  decision::LastTile last_tile(const lower::LastTileFacts& facts) override;

 private:
  const target::Target& target_;
  expr::ExprPool& pool_;
};

}  // namespace nautilus::choose
