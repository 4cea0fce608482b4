// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/ring_sequence.h"

#include <algorithm>

#include "expr/rules/simplify.h"
#include "ir/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

bool fetches_slot_tile(const Op& op, const std::string& slot_tile) {
  bool found = false;
  ir::for_each_op({op}, [&](const Op& o) {
    const auto* f = o.get<Fetch>();
    found |= f && f->slot_tile.str() == slot_tile;
  });
  return found;
}

// One fetch of all slot tiles of the slot, over a range (a point is a range of one).
struct Step {
  Expr from;
  Expr to;  // included
  bool is_point = false;
  ir::Name var;  // of the coordinates; none for a point before it was unified
  std::vector<Fetch> fetches;
};

class SequenceBuilder {
 public:
  SequenceBuilder(const Scalars& scalars, expr::ExprPool& pool)
      : scalars_(scalars), pool_(pool), simplifier_(pool) {}

  RingSequence build(const ir::Block& body, const std::vector<std::string>& slot_tiles) {
    RingSequence literal;
    std::vector<Step> steps;
    std::optional<Direction> direction;
    for (size_t i = 0; i < body.size(); ++i) {
      const Op& op = body[i];
      if (!fetches_slot_tile(op, slot_tiles[0])) continue;
      if (op.is<Fetch>()) {
        Step step;
        step.is_point = true;
        for (size_t k = 0; k < slot_tiles.size(); ++k)
          step.fetches.push_back(find(body, i, slot_tiles[k]));
        steps.push_back(std::move(step));
        continue;
      }
      const auto* loop = op.get<Loop>();
      if (!loop) return literal;
      std::vector<size_t> at;
      for (size_t k = 0; k < loop->body.size(); ++k) {
        if (!fetches_slot_tile(loop->body[k], slot_tiles[0])) continue;
        if (!loop->body[k].is<Fetch>()) return literal;
        at.push_back(k);
      }
      if (at.size() != 1) return literal;
      if (direction && *direction != loop->direction) return literal;
      direction = loop->direction;
      Step step;
      step.from = loop->from;
      step.to = loop->direction == Direction::Up ? minus(loop->to, 1) : loop->to;
      step.var = loop->var;
      for (const std::string& slot_tile : slot_tiles)
        step.fetches.push_back(find(loop->body, at[0], slot_tile));
      steps.push_back(std::move(step));
    }
    if (steps.size() == 1 && steps[0].is_point)
      return {RingSequence::Kind::Once, {}, {}, Direction::Up, {}, steps[0].fetches};
    if (!direction || !unify(steps) || !merge(steps, *direction)) return literal;
    start_at_zero(steps[0], *direction);
    RingSequence out{RingSequence::Kind::Range,
                     steps[0].var,
                     steps[0].from,
                     *direction,
                     *direction == Direction::Up ? plus(steps[0].to, 1) : steps[0].to,
                     steps[0].fetches};
    return out;
  }

 private:
  // In the run of fetches around that of the ring's first slot tile: runs have their slot tiles in
  // any order.
  static Fetch find(const ir::Block& block, size_t from, const std::string& slot_tile) {
    const ir::Name first = block[from].as<Fetch>().slot_tile;
    const auto is_of_run = [&](const Op& op) {
      const auto* f = op.get<Fetch>();
      return f && f->slot_tile != first;
    };
    while (from > 0 && is_of_run(block[from - 1])) --from;
    for (size_t k = from; k < block.size(); ++k) {
      const auto* f = block[k].get<Fetch>();
      if (f && f->slot_tile.str() == slot_tile) return *f;
    }
    NAUT_CHECK(false, "slot tile {} is not fetched with the others of its ring", slot_tile);
  }

  // The variable counts from (or down to) 0, so that sequences of the same length have the same
  // bounds.
  void start_at_zero(Step& step, Direction direction) {
    const Expr end = direction == Direction::Up ? step.from : step.to;
    if (end.op() != EK::IntConst || end.integer() == 0) return;
    const int64_t shift = end.integer();
    const Expr var = pool_.index(step.var);
    const expr::Substitution moved{{var, pool_.binary(EK::Add, var, pool_.integer(shift))}};
    step.from = plus(step.from, -shift);
    step.to = plus(step.to, -shift);
    for (Fetch& f : step.fetches) {
      for (Expr& e : f.at) {
        if (expr::depends_on(e, var))
          e = expr::canonical_index(pool_, expr::substitute(pool_, e, moved));
      }
    }
  }

  Expr plus(Expr e, int64_t c) {
    return simplifier_.simplify(pool_.binary(EK::Add, e, pool_.integer(c)));
  }
  Expr minus(Expr e, int64_t c) { return plus(e, -c); }

  // Coordinates of all steps as those of the first loop, at other values of its variable.
  bool unify(std::vector<Step>& steps) {
    const auto model =
        std::find_if(steps.begin(), steps.end(), [](const Step& s) { return !s.is_point; });
    const Step reference = *model;
    const Expr var = pool_.index(reference.var);
    for (Step& step : steps) {
      const Expr shift = shift_of(reference, var, step);
      if (!shift) return false;
      if (step.is_point) {
        step.from = step.to = shift;
      } else {
        step.from = simplifier_.simplify(pool_.binary(EK::Add, step.from, shift));
        step.to = simplifier_.simplify(pool_.binary(EK::Add, step.to, shift));
      }
      step.fetches = reference.fetches;
      step.var = reference.var;
    }
    return true;
  }

  // x such that the step's coordinates are the reference's at var := (own variable +) x; null if
  // there is none.
  Expr shift_of(const Step& reference, Expr var, const Step& step) {
    Expr shift;
    for (size_t f = 0; f < reference.fetches.size() && !shift; ++f) {
      for (size_t k = 0; k < reference.fetches[f].at.size() && !shift; ++k)
        shift = solve(reference.fetches[f].at[k], var, step.fetches[f].at[k], step);
    }
    if (!shift) return {};
    const Expr value = step.is_point ? shift : pool_.binary(EK::Add, pool_.index(step.var), shift);
    for (size_t f = 0; f < reference.fetches.size(); ++f) {
      if (reference.fetches[f].map != step.fetches[f].map) return {};
      for (size_t k = 0; k < reference.fetches[f].at.size(); ++k) {
        const Expr there =
            expr::substitute(pool_, reference.fetches[f].at[k], expr::Substitution{{var, value}});
        if (!scalars_.is_equal(there, step.fetches[f].at[k])) return {};
      }
    }
    return simplifier_.simplify(shift);
  }

  Expr solve(Expr at, Expr var, Expr wanted, const Step& step) {
    const auto p = expr::Poly::of(at);
    if (!p) return {};
    const auto parts = p->split(var);
    if (!parts || parts->first.is_zero()) return {};
    const auto coefficient = parts->first.constant();
    if (!coefficient || *coefficient <= 0) return {};
    const auto q = expr::Poly::of(wanted);
    if (!q) return {};
    auto rest = expr::add(*q, parts->second, -1);
    if (rest && !step.is_point)
      rest = expr::add(*rest, *expr::Poly::of(pool_.index(step.var)), -*coefficient);
    if (!rest) return {};
    for (const auto& [monomial, c] : rest->terms()) {
      if (c % *coefficient != 0) return {};
    }
    const auto x = expr::divide(*rest, *coefficient);
    return x ? expr::to_expr(pool_, *x) : Expr();
  }

  bool merge(std::vector<Step>& steps, Direction direction) {
    bool changed = true;
    while (steps.size() > 1 && changed) {
      changed = false;
      // From the end: a loop's bounds are written for its own neighbours, not for a peeled
      // iteration that was joined to them.
      for (size_t k = steps.size() - 1; k-- > 0;) {
        if (!follows(steps[k], steps[k + 1], direction)) continue;
        steps[k].to = steps[k + 1].to;
        steps[k].is_point = false;
        steps.erase(steps.begin() + static_cast<long>(k) + 1);
        changed = true;
        break;
      }
    }
    return steps.size() == 1;
  }

  // Whether [a .. b] then [c .. d] is [a .. d], empty ranges included.
  bool follows(const Step& first, const Step& second, Direction direction) {
    const bool is_up = direction == Direction::Up;
    const int64_t one = is_up ? 1 : -1;
    const Expr next = plus(first.to, one);  // after b
    const auto ordered = [&](Expr a, Expr b) {
      return is_up ? scalars_.is_at_least(b, a) : scalars_.is_at_least(a, b);
    };
    // The first is not emptier than "ends right before it starts". Nor is the second: it would
    // remove steps of the first.
    if (scalars_.is_equal(second.from, next))
      return (first.is_point || ordered(first.from, next)) &&
             (second.is_point || ordered(plus(second.from, -one), second.to));
    // min(a, b - 1), or max(a, b + 1) upwards: where the first is empty, the second starts at a.
    const EK op = is_up ? EK::Max : EK::Min;
    Expr e = second.from;
    int64_t offset = 0;
    if (e.op() == EK::Add && e[1].op() == EK::IntConst) {
      offset = e[1].integer();
      e = e[0];
    }
    if (e.op() != op) return false;
    const Expr x = plus(e[0], offset);
    const Expr y = plus(e[1], offset);
    const auto starts_behind = [&](Expr behind) {
      return (scalars_.is_equal(x, first.from) && scalars_.is_equal(y, behind)) ||
             (scalars_.is_equal(y, first.from) && scalars_.is_equal(x, behind));
    };
    // The first must not reach beyond the end of the second.
    if (starts_behind(next) && ordered(first.to, second.to)) return true;
    // Which is sure if the first ends at the end of the second at the latest: max(p, d) .. where
    // the second is min(a, p - 1) .. d. With p below d the second has no step, and the first all of
    // them.
    const Expr edge = is_up ? next : first.to;
    const Expr end = is_up ? plus(second.to, 1) : second.to;
    if (edge.op() != (is_up ? EK::Min : EK::Max)) return false;
    for (size_t k = 0; k < 2; ++k) {
      if (scalars_.is_equal(edge[1 - k], end) && starts_behind(is_up ? edge[k] : plus(edge[k], -1)))
        return true;
    }
    return false;
  }

  const Scalars& scalars_;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
};

}  // namespace

RingSequence ring_sequence(const ir::Block& tile_body, const std::vector<std::string>& slot_tiles,
                           const Scalars& scalars, expr::ExprPool& pool) {
  return SequenceBuilder(scalars, pool).build(tile_body, slot_tiles);
}

}  // namespace nautilus::matile
