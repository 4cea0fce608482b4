// SPDX-License-Identifier: Apache-2.0
// Which slot tiles share a ring, and the range of its fills where groups have ranges of their own.
#include <fmt/format.h>

#include <algorithm>

#include "decision/lines.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "matile/passes/roles/role_splitter.h"

namespace nautilus::matile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

// Slot tiles with the same fetches: of each run of neighbouring fetches, those that occur in the
// same runs.
bool RoleSplitter::find_rings() {
  std::map<std::string, std::vector<int>, std::less<>> runs_of;
  std::vector<std::string> order;
  int run = 0;
  map_blocks(each_->body, [&](ir::Block block) {
    bool is_open = false;
    Names in_run;
    for (const Op& op : block) {
      const auto* f = op.get<Fetch>();
      if (!f || in_run.contains(f->slot_tile.str())) {
        is_open = false;
        in_run.clear();
      }
      if (!f) continue;
      if (!is_open) ++run;
      is_open = true;
      in_run.emplace(f->slot_tile.str());
      auto& runs = runs_of[std::string(f->slot_tile.str())];
      if (runs.empty()) order.emplace_back(f->slot_tile.str());
      runs.push_back(run);
    }
    return block;
  });
  for (const Op& op : kernel_.body) {
    const auto* p = op.get<SlotTile>();
    if (p && !runs_of.contains(p->name.str())) {
      refuse(fmt::format("slot tile `{}` is never fetched", p->name.str()));
      return false;
    }
  }
  std::map<std::pair<std::vector<int>, bool>, size_t> known;
  for (const Op& op : kernel_.body) {
    const auto* p = op.get<SlotTile>();
    if (!p) continue;
    const std::string name(p->name.str());
    const bool is_per_group = depends_on_group(name);
    const auto [it, is_new] =
        known.emplace(std::make_pair(runs_of.at(name), is_per_group), rings_.size());
    if (is_new) rings_.emplace_back().is_per_group = is_per_group;
    rings_[it->second].slot_tiles.push_back(name);
    rings_[it->second].ops.push_back(*p);
  }
  for (NestRing& ring : rings_) {
    std::string base;
    for (const std::string& slot_tile : ring.slot_tiles) base += slot_tile + "_";
    ring.name = fresh_name(base + "ring", taken_, pool_);
  }
  return true;
}

void RoleSplitter::name_operands() {
  std::map<std::string, std::string, std::less<>> tensor_of;  // by slot tile
  ir::for_each_op(each_->body, [&](const Op& op) {
    const auto* f = op.get<Fetch>();
    const auto map = f ? maps_.find(f->map.str()) : maps_.end();
    if (map != maps_.end()) tensor_of.emplace(f->slot_tile.str(), map->second.value.name().str());
  });
  std::map<std::string, int> places;
  for (NestRing& ring : rings_) {
    for (const std::string& slot_tile : ring.slot_tiles) {
      const std::string& tensor = tensor_of.at(slot_tile);
      const int place = ++places[tensor];
      ring.operands.push_back(
          pool_.name(place == 1 ? tensor : fmt::format("{}.{}", tensor, place)));
    }
  }
}

bool RoleSplitter::take_ring_lines(ir::Block& body) {
  for (const Op& line : decision::take<decision::Ring>(body)) {
    const auto& asked = line.as<decision::Ring>();
    const auto ring = std::find_if(rings_.begin(), rings_.end(),
                                   [&](const NestRing& r) { return r.operands == asked.operands; });
    if (ring != rings_.end() && ring->asked.operands.empty()) {
      ring->asked = asked;
      continue;
    }
    std::string known;
    for (const NestRing& r : rings_)
      known += fmt::format("{}`{}`", known.empty() ? "" : ", ",
                           ir::print(ir::make(decision::Ring{r.operands, {}, {}, {}})));
    decision::refuse(line, "the rings of this kernel are " + known, context_);
    is_refused_ = true;
  }
  return !is_refused_;
}

void RoleSplitter::note_rings(const NestResources& chosen) {
  for (size_t k = 0; k < rings_.size(); ++k) {
    decision::note(ir::make(decision::Ring{rings_[k].operands, chosen.slots[k], rings_[k].loader,
                                           rings_[k].asked.by}),
                   context_);
  }
}

bool RoleSplitter::depends_on_group(const std::string& slot_tile) const {
  bool found = false;
  ir::for_each_op(each_->body, [&](const Op& op) {
    const auto* f = op.get<Fetch>();
    if (!f || f->slot_tile.str() != slot_tile) return;
    for (Expr e : f->at) found |= scalars_.depends_on_group(e);
  });
  // The range of a loop may differ from group to group; the coordinates at one of its values may
  // not.
  return found && !is_loop_bound_only(slot_tile);
}

// A peeled iteration has the group's bounds in its coordinates. If the whole sequence is one
// loop, they are values of its variable.
bool RoleSplitter::is_loop_bound_only(const std::string& slot_tile) const {
  const RingSequence s = ring_sequence(each_->body, {slot_tile}, scalars_, pool_);
  if (s.kind != RingSequence::Kind::Range) return false;
  for (const Fetch& f : s.fetches) {
    for (Expr e : f.at) {
      if (scalars_.depends_on_group(e)) return false;
    }
  }
  return true;
}

bool RoleSplitter::find_shared_range(NestRing& ring) {
  const RingSequence& s = ring.sequence;
  if (s.kind == RingSequence::Kind::Once) return true;
  if (s.kind == RingSequence::Kind::Literal) {
    bool ok = true;
    ir::for_each_op(each_->body, [&](const Op& op) {
      const auto* loop = op.get<Loop>();
      const auto* branch = op.get<If>();
      if (!loop && !branch) return;
      bool fetches = false;
      ir::for_each_op(*block_of(op), [&](const Op& o) {
        const auto* f = o.get<Fetch>();
        fetches |= f && f->slot_tile.str() == ring.slot_tiles[0];
      });
      if (!fetches) return;
      ok &= loop ? !scalars_.depends_on_group(loop->from) && !scalars_.depends_on_group(loop->to)
                 : !scalars_.depends_on_group(branch->condition);
    });
    if (!ok)
      refuse(fmt::format("the fetches of `{}` differ from group to group", ring.slot_tiles[0]));
    return ok;
  }
  if (ring.is_per_group) {
    if (!scalars_.depends_on_group(s.from) && !scalars_.depends_on_group(s.to)) return true;
    refuse(
        fmt::format("how often `{}` is fetched differs from group to group", ring.slot_tiles[0]));
    return false;
  }
  const bool is_up = s.direction == Direction::Up;
  const Expr from =
      scalars_.depends_on_group(s.from) ? scalars_.extreme_over_groups(s.from, !is_up) : s.from;
  const Expr to =
      scalars_.depends_on_group(s.to) ? scalars_.extreme_over_groups(s.to, is_up) : s.to;
  if (!from || !to) {
    refuse(fmt::format("the range of `{}` is not monotone in the group", ring.slot_tiles[0]));
    return false;
  }
  shared_.emplace(ring.name.str(), SharedRange{bound(s.from, from), bound(s.to, to)});
  return true;
}

// The loader's replacement of a group's bound: a scalar of all groups, named once.
Expr RoleSplitter::bound(Expr own, Expr common) {
  if (!scalars_.depends_on_group(own)) return own;
  if (common.is_const()) return common;
  // `nt - 1`: name the value of nt.
  for (const auto& [value, name] : bounds_) {
    if (const auto d = expr::difference(common, value); d && d->constant())
      return plus(pool_.index(name), *d->constant());
  }
  Expr core = common;
  int64_t offset = 0;
  if (core.op() == EK::Add && core[1].op() == EK::IntConst) {
    offset = core[1].integer();
    core = core[0];
  }
  const ir::Name name = fresh_name("n_all", taken_, pool_);
  bounds_.emplace_back(core, name);
  return plus(pool_.index(name), offset);
}

}  // namespace nautilus::matile
