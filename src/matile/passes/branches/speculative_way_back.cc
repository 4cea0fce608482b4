// SPDX-License-Identifier: Apache-2.0
// How a speculative step begins again: with copies of what weighing overwrites, or by repeating the
// product that it came from.
#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "matile/passes/branches/speculative_search.h"

namespace nautilus::matile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

namespace {

bool has_select(Expr e) {
  bool found = false;
  expr::for_each(e, [&](Expr x) { found |= x.op() == EK::Select; });
  return found;
}

}  // namespace

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

const SlotTile* SpeculativeSteps::slot_tile(ir::Name name, ir::Name* ring_name) const {
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
  const SlotTile* p = slot_tile(operand, &ring);
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
  const SlotTile* a = slot_tile(dot.a, &rings[0]);
  const SlotTile* b = slot_tile(dot.b, &rings[1]);
  const auto& type = tiles_.at(scores).type;
  // A warp repeats the product two instructions at a time: it loads what both need at once.
  const int64_t columns = int64_t{2} * matrix_.column_step;
  if (!a || !b || dot.mode != DotMode::Init || dot.trans != Trans::Yes ||
      dot.trans_a == Trans::Yes || rings[0] == rings[1] || a->swizzle != MapSwizzle::B128 ||
      b->swizzle != MapSwizzle::B128 || type.dtype != expr::DType::F32 ||
      type.dims[0].integer() != matrix_.rows || type.dims[1].integer() % columns != 0 ||
      type.dims[1] != b->type.dims[0])
    return false;
  // In-place work must be repeatable.
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
  // Masked steps are few: where the reference may not exist yet, they stay unchanged.
  const bool is_masked = std::any_of(step.again.begin() + 1, step.again.end(), [&](size_t k) {
    return has_select(s.block[k].as<Set>().value);
  });
  return !step.releases.empty() && (step.unset.empty() || !is_masked);
}

}  // namespace nautilus::matile
