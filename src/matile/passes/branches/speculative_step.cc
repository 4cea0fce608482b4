// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/branches/speculative_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "matile/passes/branches/reference_powers.h"
#include "matile/passes/branches/speculative_search.h"
#include "matile/passes/branches/weight_terms.h"

namespace nautilus::matile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

namespace {

Expr value_of(const Op& op) {
  if (const auto* set = op.get<Set>()) return set->value;
  if (const auto* fold = op.get<Fold>()) return fold->value;
  return {};
}

}  // namespace

SpeculativeSteps::SpeculativeSteps(const Kernel& kernel, const Role& role,
                                   const target::Matrix& matrix, expr::ExprPool& pool)
    : kernel_(kernel), role_(role), matrix_(matrix), pool_(pool), tiles_(declared_tiles(role)) {}

std::optional<SpeculativeStep> SpeculativeSteps::at(const ir::Block& block, size_t vote,
                                                    std::string* why) const {
  Search s{block, {}};
  s.step.vote = vote;
  s.vote = block[vote].as<Vote>().name;
  for (const Op& op : block) s.touched.push_back(touched_by(op));
  if (find_extreme(s) && find_weights(s) && find_checks(s) && find_others(s) && find_guards(s) &&
      find_ranges(s) && find_way_back(s))
    return s.step;
  *why = s.why;
  return std::nullopt;
}

// The vote compares a reference with an extreme value that nothing else needs.
bool SpeculativeSteps::find_extreme(Search& s) const {
  s.step.branch = s.step.vote + 1;
  if (s.step.branch >= s.block.size() || !s.is_branch(s.step.branch))
    return s.no(fmt::format("no branch follows the vote `{}`", s.vote.str()));
  s.moved = s.touched[s.step.branch];
  const Expr test = s.block[s.step.vote].as<Vote>().value.body();
  if (test.op() != EK::Gt || test[1].op() != EK::FloatConst)
    return s.no(fmt::format("the vote `{}` is not about how far a reference lags", s.vote.str()));
  s.lag = test[0];
  for (ir::Name n : expr::tensors_read(s.block[s.step.vote].as<Vote>().value)) {
    bool is_local = false;
    for (size_t k = 0; k < s.step.vote; ++k) {
      const auto* fold = s.block[k].get<Fold>();
      is_local |= fold && fold->target == n;
    }
    if (is_local && s.local.empty()) {
      s.local = n.str();
    } else if (!is_local && !s.reference && s.moved.writes.contains(n.str())) {
      s.reference = n;
    } else {
      return s.no(fmt::format("the vote `{}` is not about one reference", s.vote.str()));
    }
  }
  if (s.local.empty() || !s.reference)
    return s.no(fmt::format("the vote `{}` compares no reference with its step", s.vote.str()));
  for (size_t k = 0; k < s.block.size(); ++k) {
    if (k == s.step.vote || s.is_branch(k) || !s.touched[k].mentions(s.local)) continue;
    const auto* fold = s.block[k].get<Fold>();
    const bool is_extreme = fold && fold->value.op() == EK::Reduce &&
                            (fold->value.reducer() == expr::Reducer::Max ||
                             fold->value.reducer() == expr::Reducer::Min);
    const bool is_first = s.step.extreme.empty();
    if (k > s.step.vote || (is_first ? !is_extreme : !s.block[k].is<Lanes>()))
      return s.no(fmt::format("every step needs its extreme value `{}`", s.local));
    s.step.extreme.push_back(k);
  }
  return true;
}

// Sets after the branch that use moved values. Values that use only weights, after a sum of them,
// are skipped: they come after the test.
bool SpeculativeSteps::find_weights(Search& s) const {
  Names late_reads;
  Names late_writes;
  s.rows.emplace(s.reference.str());
  bool is_summed = false;
  for (size_t k = s.step.branch + 1; k < s.block.size(); ++k) {
    const Op& op = s.block[k];
    const Touched& t = s.touched[k];
    const bool is_relative = meets(t.reads, s.moved.writes) || meets(t.reads, s.guessed);
    if (block_of(op) || op.is<Vote>() || op.is<Store>() || op.is<Dot>()) break;
    if (!is_relative) {
      if (meets(t.writes, s.moved.reads) || meets(t.writes, s.moved.writes)) break;
      continue;
    }
    const auto* set = op.get<Set>();
    const auto* fold = op.get<Fold>();
    if (!set && !fold) break;
    const bool is_weight =
        set && (!is_summed || meets(t.reads, s.moved.writes) || meets(t.reads, s.rows));
    if (is_weight) {
      if (meets(t.writes, s.moved.writes) || meets(t.writes, late_reads) ||
          meets(t.writes, late_writes) || meets(t.reads, late_writes) ||
          reads_vote(set->value, s.vote))
        break;
      s.step.weigh.push_back(k);
      s.step.end = k;
      s.guessed.insert(t.writes.begin(), t.writes.end());
      if (set->axes.size() == 1) s.rows.insert(t.writes.begin(), t.writes.end());
      continue;
    }
    is_summed |= fold && summed_tile(*fold) && s.guessed.contains(summed_tile(*fold).str());
    late_reads.insert(t.reads.begin(), t.reads.end());
    late_writes.insert(t.writes.begin(), t.writes.end());
  }
  // A 16-bit copy of the weights is made once they are final.
  while (s.step.weigh.size() > 1) {
    const auto& last = s.block[s.step.weigh.back()].as<Set>();
    if (last.value.op() != EK::Cast || last.value[0].op() != EK::Read) break;
    s.guessed.erase(std::string(last.target.str()));
    s.step.weigh.pop_back();
    s.step.end = s.step.weigh.back();
  }
  return true;
}

bool SpeculativeSteps::find_checks(Search& s) const {
  find_weight_checks(s);
  SpeculativeStep& step = s.step;
  // Sums of weights that no tile has.
  for (size_t k = step.branch + 1; k < s.block.size(); ++k) {
    if (block_of(s.block[k])) break;
    const auto* fold = s.block[k].get<Fold>();
    const Expr terms = fold ? summed(*fold) : Expr();
    if (!terms || exponentials(terms, s.rows).empty() || !is_nonnegative(terms, {})) continue;
    step.checks.push_back({{}, k, false, 0});
    step.end = std::max(step.end, k);
  }
  if (step.checks.empty())
    return s.no(fmt::format("no weights are computed from `{}`", s.reference.str()));
  return find_later(s);
}

// The weights that others read, each with the sum that shows its range.
void SpeculativeSteps::find_weight_checks(Search& s) const {
  SpeculativeStep& step = s.step;
  Names nonnegative;
  for (size_t k : step.weigh) {
    const auto& set = s.block[k].as<Set>();
    const std::string target(set.target.str());
    if (is_nonnegative(set.value, nonnegative)) {
      nonnegative.insert(target);
    } else {
      nonnegative.erase(target);
    }
  }
  const size_t weighed = step.end;
  for (const std::string& name : s.guessed) {
    const Tile& tile = tiles_.at(name);
    bool is_read = false;
    for (size_t k = 0; k < s.block.size(); ++k)
      is_read |= !has(step.weigh, k) && !s.is_branch(k) && s.touched[k].reads.contains(name);
    if (!is_read || tile.type.dims.size() != 2) continue;
    WeightCheck check{tile.name, {}, !nonnegative.contains(name), 0};
    for (size_t k = step.branch + 1; k < s.block.size() && !check.sum; ++k) {
      // Behind another branch the sum may be one of something that it rescales.
      if (block_of(s.block[k]) || (s.touched[k].writes.contains(name) && k > weighed)) break;
      const auto* fold = s.block[k].get<Fold>();
      if (fold && !check.is_signed && summed_tile(*fold) == tile.name) check.sum = k;
    }
    if (check.sum) step.end = std::max(step.end, *check.sum);
    step.checks.push_back(check);
  }
}

// Ops before the end that need the weights are executed after the branch; the tested sums must
// not depend on them.
bool SpeculativeSteps::find_later(Search& s) const {
  SpeculativeStep& step = s.step;
  Touched late;
  for (size_t k = step.branch + 1; k <= step.end; ++k) {
    if (has(step.weigh, k)) continue;
    const bool is_sum = is_check(step, k);
    const Touched& t = s.touched[k];
    if (is_sum) {
      if (meets(t.reads, late.writes) || meets(t.writes, late.writes) ||
          meets(t.writes, late.reads))
        return s.no("the sums of a step depend on each other");
      continue;
    }
    const bool is_relative = meets(t.reads, s.moved.writes) || meets(t.reads, s.guessed) ||
                             meets(t.reads, late.writes) || meets(t.writes, late.reads);
    if (!is_relative) continue;
    step.later.push_back(k);
    late.reads.insert(t.reads.begin(), t.reads.end());
    late.writes.insert(t.writes.begin(), t.writes.end());
  }
  return true;
}

// Values that are computed from the reference after the test use tested weights.
bool SpeculativeSteps::find_others(Search& s) const {
  const SpeculativeStep& step = s.step;
  std::vector<Expr> tested;
  for (size_t k = step.branch + 1; k < s.block.size(); ++k) {
    if (!has(step.weigh, k) && !is_check(step, k)) continue;
    for (Expr e : exponentials(value_of(s.block[k]), s.rows)) tested.push_back(e);
  }
  for (size_t k = step.branch + 1; k < s.block.size(); ++k) {
    if (has(step.weigh, k) || is_check(step, k) || s.is_branch(k)) continue;
    const Expr value = value_of(s.block[k]);
    if (!value) continue;
    for (Expr e : exponentials(value, s.rows)) {
      if (std::find(tested.begin(), tested.end(), e) != tested.end()) continue;
      return s.no(
          fmt::format("nothing shows the range of the weights in `{}`", ir::print(s.block[k])));
    }
  }
  return true;
}

// Selects by the reference are guards of one that nothing has moved yet.
bool SpeculativeSteps::find_guards(Search& s) const {
  for (size_t k = s.step.branch + 1; k <= s.step.end; ++k) {
    if (!has(s.step.weigh, k) && !is_check(s.step, k)) continue;
    bool is_known = true;
    expr::for_each(value_of(s.block[k]), [&](Expr x) {
      if (x.op() != EK::Select) return;
      bool is_relative = false;
      for (ir::Name n : expr::tensors_read(x[0]))
        is_relative |= s.moved.writes.contains(n.str()) || s.guessed.contains(n.str());
      if (!is_relative) return;
      is_known &= is_guard(x) && s.moved.writes.contains(x[0][0].name().str());
      const bool is_new = std::none_of(s.step.unset.begin(), s.step.unset.end(), [&](Expr c) {
        return is_known && c[0].name() == x[0][0].name();
      });
      if (is_known && is_new) s.step.unset.push_back(x[0]);
    });
    if (!is_known)
      return s.no(fmt::format("`{}` chooses by a reference that may move", ir::print(s.block[k])));
  }
  return true;
}

bool SpeculativeSteps::find_ranges(Search& s) const {
  const ReferencePowers powers(role_, s.reference, pool_);
  if (!powers.why().empty()) return s.no(powers.why());
  for (const std::string& name : s.guessed) {
    const Tile& tile = tiles_.at(name);
    if (tile.type.dims.size() == 1 && powers.is_weight(tile.name))
      return s.no(fmt::format("`{}` grows with what `{}` lags by, and is not one of many in a sum",
                              name, s.reference.str()));
  }
  for (WeightCheck& check : s.step.checks) {
    const ir::Name of = check.tile ? check.tile : s.block[*check.sum].as<Fold>().target;
    const auto range = powers.range(of, s.lag);
    if (!range)
      return s.no(
          fmt::format("`{}` does not grow with what `{}` lags by", of.str(), s.reference.str()));
    check.range = *range;
  }
  return true;
}

}  // namespace nautilus::matile
