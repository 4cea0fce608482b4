// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/registers/sum_deferral.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

struct Linear {
  bool ok = true;
  Names open;  // tiles that would have to be partial too: terms without a partial factor
};

// Whether the sum of e over the lanes is e of the sums of its partial tiles. Terms that are a tile
// not known to be partial are reported as open.
void linear(Expr e, const Names& partial, Linear& out) {
  const auto is_free = [&](Expr x) {
    for (ir::Name n : expr::tensors_read(x)) {
      if (partial.contains(n.str())) return false;
    }
    return true;
  };
  switch (e.op()) {
    case EK::FloatConst:
      out.ok &= e.number() == 0;
      return;
    case EK::Read:
      if (!partial.contains(e.name().str())) out.open.emplace(e.name().str());
      return;
    case EK::Neg:
      return linear(e[0], partial, out);
    case EK::Add:
    case EK::Sub:
      linear(e[0], partial, out);
      return linear(e[1], partial, out);
    case EK::Mul: {
      const bool is_left_free = is_free(e[0]);
      const bool is_right_free = is_free(e[1]);
      if (is_left_free == is_right_free) {
        // Neither is known: the first factor that is a tile may become so.
        out.ok &= is_left_free && (e[0].op() == EK::Read || e[1].op() == EK::Read);
        if (out.ok) out.open.emplace((e[0].op() == EK::Read ? e[0] : e[1]).name().str());
        return;
      }
      return linear(is_left_free ? e[1] : e[0], partial, out);
    }
    case EK::Div:
      out.ok &= is_free(e[1]);
      return linear(e[0], partial, out);
    case EK::Select:
      out.ok &= is_free(e[0]);
      linear(e[1], partial, out);
      return linear(e[2], partial, out);
    default:
      out.ok = false;
  }
}

struct Flat {
  Op op;
  std::vector<int> loops;  // numbers of the loops around it
};

// Copies of an unrolled block are iterations too, but one exchange before them all will do.
void flatten(const ir::Block& block, std::vector<int>& loops, int& next, std::vector<Flat>& out,
             int unrolled = 0) {
  for (const Op& op : block) {
    const ir::Block* inner = block_of(op);
    if (!inner) {
      out.push_back({op, loops});
      continue;
    }
    const bool is_loop = op.is<Loop>() || (op.is<Unroll>() && unrolled > 0);
    if (is_loop) loops.push_back(next++);
    flatten(*inner, loops, next, out, unrolled + (op.is<Unroll>() ? 1 : 0));
    if (is_loop) loops.pop_back();
  }
}

bool reads_partial(Expr e, const Names& partial) {
  for (ir::Name n : expr::tensors_read(e)) {
    if (partial.contains(n.str())) return true;
  }
  return false;
}

class SumDeferral {
 public:
  SumDeferral(const ir::Block& tile_body, Names alike, bool can_share)
      : alike_(std::move(alike)), can_share_(can_share) {
    std::vector<int> loops;
    int next = 0;
    flatten(tile_body, loops, next, ops_);
  }

  std::optional<std::pair<Names, std::vector<std::pair<Op, std::string>>>> plan(
      const std::string& start) {
    Names partial{start};
    if (!close(partial)) return std::nullopt;
    bool crosses_loop = false;
    size_t last = 0;
    for (size_t k = 0; k < ops_.size(); ++k) {
      if (is_partial_op(ops_[k].op, partial)) {
        last = k;
        crosses_loop |= !ops_[k].loops.empty();
      }
    }
    if (!crosses_loop) return std::nullopt;
    std::vector<std::pair<Op, std::string>> uses;
    Names combined;
    for (size_t k = 0; k < ops_.size(); ++k) {
      const Op& op = ops_[k].op;
      // A product of two sums is not a sum of products.
      if (const auto* fold = op.get<Fold>(); fold && reads_partial(fold->value, partial))
        return std::nullopt;
      if (is_partial_op(op, partial) || op.is<Lanes>()) continue;
      for (const std::string& name : touched_by(op).reads) {
        if (!partial.contains(name)) continue;
        // Afterwards the tile is whole: no op may treat it as partial, nor reach this place again.
        if (k < last || !ops_[k].loops.empty()) return std::nullopt;
        if (combined.insert(name).second) uses.emplace_back(op, name);
      }
    }
    return std::make_pair(partial, uses);
  }

 private:
  static bool is_sum_fold(const Op& op) {
    const auto* f = op.get<Fold>();
    return f && f->value.op() == EK::Reduce && f->value.reducer() == expr::Reducer::Sum;
  }

  // Writes a partial tile from partial tiles.
  static bool is_partial_op(const Op& op, const Names& partial) {
    const auto* set = op.get<Set>();
    const auto* fold = op.get<Fold>();
    return (set && partial.contains(set->target.str())) ||
           (fold && partial.contains(fold->target.str()));
  }

  // Grows the set until every definition of its tiles is a partial sum.
  bool close(Names& partial) const {
    while (true) {
      const size_t before = partial.size();
      Names open;
      for (const Flat& flat : ops_) {
        const Op& op = flat.op;
        const auto* set = op.get<Set>();
        if (set && set->value.op() != EK::FloatConst) {
          Linear l;
          linear(set->value, partial, l);
          const bool reads = reads_partial(set->value, partial);
          const bool is_copy = is_identity_read(set->value, set->axes);
          if (partial.contains(set->target.str())) {
            if (can_share_ && !reads && (!l.ok || !all_alike(l.open))) continue;
            if (!l.ok) return false;
            open.insert(l.open.begin(), l.open.end());
          } else if (reads && l.ok && alike_.contains(set->target.str()) &&
                     (is_copy || all_alike(l.open))) {
            partial.emplace(set->target.str());
          }
          continue;
        }
        const Touched t = touched_by(op);
        for (const std::string& w : t.writes) {
          if (!partial.contains(w)) continue;
          const bool is_zero = set && (can_share_ || set->value.number() == 0);
          const auto* lanes = op.get<Lanes>();
          const bool is_sum_lanes = lanes && lanes->reducer == expr::Reducer::Sum;
          if (!is_zero && !is_sum_fold(op) && !is_sum_lanes) return false;
        }
      }
      if (partial.size() > before) continue;  // open tiles may have become known
      if (open.empty()) return true;
      if (!all_alike(open)) return false;
      partial.insert(open.begin(), open.end());
    }
  }

  // `l1 = l * a + t`: the other terms are tiles that can be partial as well.
  bool all_alike(const Names& names) const {
    return std::all_of(names.begin(), names.end(),
                       [&](const std::string& name) { return alike_.contains(name); });
  }

  Names alike_;
  bool can_share_;
  std::vector<Flat> ops_;
};

}  // namespace

std::optional<std::pair<Names, std::vector<std::pair<Op, std::string>>>> plan_deferral(
    const ir::Block& tile_body, const Names& alike, bool can_share, const std::string& start) {
  return SumDeferral(tile_body, alike, can_share).plan(start);
}

bool is_held_whole(const Set& set, const Names& partial) {
  if (reads_partial(set.value, partial)) return false;
  Linear l;
  linear(set.value, partial, l);
  return !l.ok || !l.open.empty();
}

}  // namespace nautilus::matile
