// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/branches/speculative_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "matile/passes/branches/reference_powers.h"
#include "matile/passes/branches/weight_terms.h"

namespace nautilus::matile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

namespace {

bool meets(const Names& a, const Names& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& n) { return b.contains(n); });
}

bool has(const std::vector<size_t>& places, size_t k) {
  return std::find(places.begin(), places.end(), k) != places.end();
}

bool is_check(const SpeculativeStep& step, size_t k) {
  return std::any_of(step.checks.begin(), step.checks.end(),
                     [&](const WeightCheck& c) { return c.sum == k; });
}

Expr value_of(const Op& op) {
  if (const auto* set = op.get<Set>()) return set->value;
  if (const auto* fold = op.get<Fold>()) return fold->value;
  return {};
}

bool reads_vote(Expr e, ir::Name vote) {
  bool found = false;
  expr::for_each(e, [&](Expr x) { found |= x.op() == EK::Var && x.name() == vote; });
  return found;
}

bool has_select(Expr e) {
  bool found = false;
  expr::for_each(e, [&](Expr x) { found |= x.op() == EK::Select; });
  return found;
}

}  // namespace

struct SpeculativeSteps::Search {
  const ir::Block& block;
  SpeculativeStep step;
  std::string why = {};
  std::string local = {};  // the step's extreme value
  ir::Name reference = {};
  ir::Name vote = {};
  Expr lag = {};                      // by how many powers of two the reference is behind
  Touched moved = {};                 // by the branch
  Names guessed = {};                 // tiles made from the reference
  Names rows = {};                    // it, and those of them with one value of a row
  std::vector<Touched> touched = {};  // of each op of the block

  bool no(std::string reason) {
    why = std::move(reason);
    return false;
  }
  // Under the vote, where everything is known.
  bool is_branch(size_t k) const {
    const auto* branch = block[k].get<If>();
    return branch && branch->condition.op() == EK::Var && branch->condition.name() == vote;
  }
};

SpeculativeSteps::SpeculativeSteps(const Kernel& kernel, const Role& role, expr::ExprPool& pool)
    : kernel_(kernel), role_(role), pool_(pool), tiles_(declared_tiles(role)) {}

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

// Sets that follow the branch and are made from what it moves. What is made from weights alone,
// behind a sum of them, is not looked at: it stands behind the test.
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

// The weights that others read, each with the sum that shows its range.
bool SpeculativeSteps::find_checks(Search& s) const {
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
  // What stands before the end and needs the weights is done behind the branch; the sums that
  // are tested must not depend on it.
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

// What is computed from the reference behind the test is made of weights that were tested.
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

// Tiles that weighing overwrites, and that are needed to do it again.
bool SpeculativeSteps::find_way_back(Search& s) const {
  SpeculativeStep& step = s.step;
  std::vector<size_t> sequence = step.extreme;
  sequence.push_back(step.branch);
  sequence.insert(sequence.end(), step.weigh.begin(), step.weigh.end());
  for (const WeightCheck& c : step.checks) {
    if (c.sum) sequence.push_back(*c.sum);
  }
  Names needed;
  Names made;
  Names lost;
  for (size_t k : sequence) {
    for (const std::string& n : s.touched[k].reads) {
      if (!made.contains(n)) needed.insert(n);
    }
    if (k != step.branch) made.insert(s.touched[k].writes.begin(), s.touched[k].writes.end());
  }
  for (size_t k : step.weigh) {
    for (const std::string& n : s.touched[k].writes) {
      if (needed.contains(n)) lost.insert(n);
    }
  }
  const size_t first = step.extreme.front();
  for (size_t k = first; k <= step.end; ++k) {
    if (has(sequence, k) || has(step.later, k) || k == step.vote) continue;
    const bool is_sum = is_check(step, k);
    if (!is_sum && meets(s.touched[k].writes, needed))
      return s.no("a step overwrites what it would begin again with");
  }
  for (const std::string& n : lost) {
    if (meets(s.moved.writes, {n}) || !tiles_.contains(n))
      return s.no(fmt::format("`{}` is overwritten before the range is known", n));
    step.kept.push_back(tiles_.at(n).name);
  }
  const bool has_sums = step.checks.size() == 1 && step.checks[0].tile && step.checks[0].sum;
  step.is_cheap = find_repetition(s) && has_sums;
  if (!step.again.empty()) step.kept.clear();
  return true;
}

const SlotTile* SpeculativeSteps::part(ir::Name name, ir::Name* ring_name) const {
  for (const Op& op : kernel_.body) {
    const auto* ring = op.get<Ring>();
    if (!ring) continue;
    for (const Op& p : ring->body) {
      if (p.as<SlotTile>().name != name) continue;
      *ring_name = ring->name;
      return &p.as<SlotTile>();
    }
  }
  return nullptr;
}

int64_t SpeculativeSteps::depth(ir::Name operand) const {
  ir::Name ring;
  const SlotTile* p = part(operand, &ring);
  return p ? p->type.dims[1].integer() : 0;
}

// The scores come again from one product of two slots and what is done with them in place, if
// warps can repeat that for themselves.
bool SpeculativeSteps::find_repetition(Search& s) const {
  SpeculativeStep& step = s.step;
  if (step.kept.size() != 1) return false;
  const std::string scores(step.kept[0].str());
  const size_t first = step.extreme.front();
  std::vector<size_t> again;
  for (size_t k = 0; k < s.block.size(); ++k) {
    const Op& op = s.block[k];
    if (!s.touched[k].writes.contains(scores) || has(step.weigh, k) || op.is<Wait>()) continue;
    if (k > step.end) break;
    const bool is_product = op.is<Dot>() && again.empty();
    const bool is_in_place =
        op.is<Set>() && !again.empty() && !reads_vote(op.as<Set>().value, s.vote);
    if (k > first || (!is_product && !is_in_place)) return false;
    again.push_back(k);
  }
  if (again.empty()) return false;
  const Dot& dot = s.block[again[0]].as<Dot>();
  ir::Name rings[2];
  const SlotTile* a = part(dot.a, &rings[0]);
  const SlotTile* b = part(dot.b, &rings[1]);
  const auto& type = tiles_.at(scores).type;
  constexpr int64_t kRows = 64;
  constexpr int64_t kColumns = 16;
  if (!a || !b || dot.mode != DotMode::Init || dot.trans != Trans::Yes || rings[0] == rings[1] ||
      a->swizzle != MapSwizzle::B128 || b->swizzle != MapSwizzle::B128 ||
      type.dtype != expr::DType::F32 || type.dims[0].integer() != kRows ||
      type.dims[1].integer() % kColumns != 0 || type.dims[1] != b->type.dims[0])
    return false;
  // What is done in place must be possible once more.
  for (size_t place = 1; place < again.size(); ++place) {
    for (size_t k = again[place]; k <= step.end; ++k) {
      for (const std::string& n : s.touched[k].writes) {
        if (n != scores && s.touched[again[place]].reads.contains(n)) return false;
      }
    }
  }
  std::vector<size_t> releases;
  for (size_t k = again[0] + 1; k < s.block.size(); ++k) {
    const auto* r = s.block[k].get<Release>();
    const auto* g = s.block[k].get<Get>();
    if (r && r->ring == rings[0]) return false;
    if (k <= step.end && g && (g->ring == rings[0] || g->ring == rings[1])) return false;
    if (r && r->ring == rings[1] && k <= step.end) releases.push_back(k);
  }
  if (releases.size() > 1) return false;
  step.again = std::move(again);
  step.releases = std::move(releases);
  // Masked steps are few: where the reference may not be there yet, they stay as they are.
  const bool is_masked = std::any_of(step.again.begin() + 1, step.again.end(), [&](size_t k) {
    return has_select(s.block[k].as<Set>().value);
  });
  return !step.releases.empty() && (step.unset.empty() || !is_masked);
}

}  // namespace nautilus::matile
