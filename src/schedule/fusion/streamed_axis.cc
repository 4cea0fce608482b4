// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/streamed_axis.h"

#include <algorithm>

#include "target/target.h"

namespace nautilus::schedule {

using expr::Op;

namespace {
// A long axis is before any short one: a read gives 3 at most, and no product has that many.
constexpr int kLongBeforeReads = 16;
}  // namespace

size_t streamed_axis(const Statement& seed, const Target& target, expr::ExprPool& pool) {
  size_t best = 0;
  int best_score = -1;
  for (size_t k = 0; k < seed.reduce.size(); ++k) {
    const Expr extent = seed.reduce[k].extent;
    // No step of its own worth streaming: a product's depth is longer.
    const bool is_short = extent.op() == Op::IntConst && extent.integer() < target.matrix.depth;
    int score = is_short ? 0 : kLongBeforeReads;
    expr::for_each(seed.value, [&](Expr e) {
      if (e.op() != Op::Read || e.args().empty()) return;
      const Expr a = pool.index(seed.reduce[k].name);
      const bool is_plain = std::find(e.args().begin(), e.args().end(), a) != e.args().end();
      score += (is_plain ? 1 : 0) + (e.args().back() == a ? 2 : 0);
    });
    if (score >= best_score) {
      best = k;
      best_score = score;
    }
  }
  return best;
}

}  // namespace nautilus::schedule
