// SPDX-License-Identifier: Apache-2.0
// The computing role: gets in place of fetches, and the skips and jumps of a group that does not
// use all slots of a ring.
#include <fmt/format.h>

#include <algorithm>

#include "ir/walk.h"
#include "matile/passes/roles/fetch_count.h"
#include "matile/passes/roles/role_splitter.h"

namespace nautilus::matile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

namespace {

bool steps(const Op& op, ir::Name ring) {
  bool found = false;
  ir::for_each_op({op}, [&](const Op& o) {
    const auto* g = o.get<Get>();
    found |= g && g->ring == ring;
  });
  return found;
}

}  // namespace

std::optional<Role> RoleSplitter::compute_role(const NestResources& chosen) {
  ir::Block body = with_gets(each_->body);
  // Common bounds come after the scalars they are made of: before the first of a group.
  ir::Block tile;
  bool has_bounds = bounds_.empty();
  const auto add_bounds = [&] {
    if (has_bounds) return;
    has_bounds = true;
    for (const auto& [value, name] : bounds_) tile.push_back(ir::make(Let{name, value}));
  };
  for (Op& op : body) {
    const auto* let = op.get<Let>();
    if (!let || scalars_.depends_on_group(let->value)) add_bounds();
    tile.push_back(std::move(op));
  }
  add_bounds();
  add_skips(tile);
  ir::Block out;
  for (const Op& op : role_.body) {
    if (const auto* each = op.get<Each>()) {
      if (!add_jumps(out, tile)) return std::nullopt;
      Each changed = *each;
      changed.body = with_stages(tile, chosen);
      out.push_back(ir::make(std::move(changed)));
    } else {
      out.push_back(op);
    }
  }
  Role role = role_;
  role.regs = chosen.compute_registers;
  role.body = std::move(out);
  return role;
}

const NestRing* RoleSplitter::ring_of(std::string_view slot_tile) const {
  for (const NestRing& ring : rings_) {
    if (std::find(ring.slot_tiles.begin(), ring.slot_tiles.end(), slot_tile) !=
        ring.slot_tiles.end())
      return &ring;
  }
  return nullptr;
}

ir::Block RoleSplitter::with_gets(const ir::Block& block) const {
  return map_blocks(block, [&](ir::Block ops) {
    ir::Block out;
    for (Op& op : ops) {
      const auto* f = op.get<Fetch>();
      if (!f) {
        out.push_back(std::move(op));
      } else if (const NestRing* ring = ring_of(f->slot_tile.str());
                 ring->slot_tiles[0] == f->slot_tile.str()) {
        out.push_back(ir::make(Get{ring->name}, op.span()));
      }
    }
    return out;
  });
}

// Gets a slot of the ring or reads its slot tiles.
bool RoleSplitter::uses(const Op& op, ir::Name ring) const {
  if (steps(op, ring)) return true;
  const Touched touched = touched_by(op);
  for (const NestRing& r : rings_) {
    if (r.name != ring) continue;
    return std::any_of(r.slot_tiles.begin(), r.slot_tiles.end(), [&](const std::string& slot_tile) {
      return touched.reads.contains(slot_tile);
    });
  }
  return false;
}

// Groups may be further apart than rings have slots. One that skipped all of a ring before the next
// would wait for a slot that the others cannot free before it skips the next one, too: it skips
// both side by side.
void RoleSplitter::join_skips(std::vector<SkippedRange>& ranges) const {
  for (size_t a = 0; a < ranges.size(); ++a) {
    for (size_t b = ranges.size(); b-- > a + 1;) {
      if (ranges[a].is_front != ranges[b].is_front) continue;
      const auto low = expr::difference(ranges[b].low, ranges[a].low);
      const auto high = expr::difference(ranges[b].high, ranges[a].high);
      if (!low || !high || !low->constant() || low->constant() != high->constant()) continue;
      ranges[a].rings.insert(ranges[a].rings.end(), ranges[b].rings.begin(), ranges[b].rings.end());
      ranges.erase(ranges.begin() + static_cast<long>(b));
    }
  }
}

// A group with a shorter range than the loader's skips the rest.
void RoleSplitter::add_skips(ir::Block& tile) {
  std::vector<SkippedRange> differences;
  const auto add = [&](Expr low, Expr high, bool is_front, ir::Name ring) {
    for (SkippedRange& d : differences) {
      if (d.low != low || d.high != high || d.is_front != is_front) continue;
      d.rings.push_back(ring);
      return;
    }
    differences.push_back({low, high, is_front, {ring}});
  };
  for (const NestRing& ring : rings_) {
    const auto it = shared_.find(ring.name.str());
    if (it == shared_.end()) continue;
    const RingSequence& s = ring.sequence;
    const bool is_up = s.direction == Direction::Up;
    // As ranges low <= x < high of iterations that this group does not have. A group without any
    // iteration skips what the others have, no more.
    const Expr begin = is_up ? s.from : s.to;                    // first of the group's
    const Expr end = is_up ? s.to : plus_simple(s.from, 1);      // after its last
    const Expr first = is_up ? it->second.from : it->second.to;  // and of the loader's
    const Expr last = is_up ? it->second.to : plus_simple(it->second.from, 1);
    if (first != begin) {
      const Expr high =
          scalars_.is_at_least(end, begin) ? begin : pool_.binary(EK::Min, begin, last);
      add(first, high, is_up, ring.name);
    }
    if (last != end) {
      const Expr low = scalars_.is_at_least(end, begin) ? end : pool_.binary(EK::Max, begin, end);
      add(low, last, !is_up, ring.name);
    }
  }
  join_skips(differences);
  for (const SkippedRange& d : differences) {
    Loop loop{fresh_name("skipped", taken_, pool_), d.low, Direction::Up, d.high, {}};
    for (ir::Name ring : d.rings) loop.body.push_back(ir::make(Skip{ring}));
    size_t at = d.is_front ? tile.size() : 0;
    for (size_t k = 0; k < tile.size(); ++k) {
      for (ir::Name ring : d.rings) {
        if (d.is_front && steps(tile[k], ring)) at = std::min(at, k);
        if (!d.is_front && uses(tile[k], ring)) at = std::max(at, k + 1);
      }
    }
    tile.insert(tile.begin() + static_cast<long>(at), ir::make(std::move(loop)));
  }
}

// Groups that alternate tiles step over the slots of the others' tiles.
bool RoleSplitter::add_jumps(ir::Block& before, ir::Block& tile) {
  if (each_->alternate.value_or(1) == 1) return true;
  const int64_t others = *each_->alternate - 1;
  for (const NestRing& ring : rings_) {
    const RingSequence& s = ring.sequence;
    Expr count;
    if (s.kind == RingSequence::Kind::Once) count = pool_.integer(1);
    if (s.kind == RingSequence::Kind::Range && s.direction == Direction::Up)
      count = s.from.is_int(0) ? s.to : pool_.binary(EK::Sub, s.to, s.from);
    if (s.kind == RingSequence::Kind::Range && s.direction == Direction::Down)
      count = plus_simple(s.to.is_int(0) ? s.from : pool_.binary(EK::Sub, s.from, s.to), 1);
    if (s.kind == RingSequence::Kind::Literal)
      count = fetch_count(each_->body, ring.slot_tiles[0], pool_);
    if (!count || ring.is_per_group || scalars_.depends_on(count, each_->var)) {
      refuse(fmt::format("groups alternate tiles, but `{}` is not fetched equally often for each",
                         ring.slot_tiles[0]));
      return false;
    }
    const Expr index = pool_.index(role_.index);
    before.push_back(
        ir::make(Jump{ring.name, count.is_int(1) ? index : pool_.binary(EK::Mul, index, count)}));
    const Expr jump = others == 1 ? count : pool_.binary(EK::Mul, pool_.integer(others), count);
    size_t at = 0;
    for (size_t k = 0; k < tile.size(); ++k) {
      if (uses(tile[k], ring.name)) at = k + 1;
    }
    tile.insert(tile.begin() + static_cast<long>(at), ir::make(Jump{ring.name, jump}));
  }
  return true;
}

ir::Block RoleSplitter::with_stages(const ir::Block& block, const NestResources& chosen) const {
  return map_blocks(block, [&](ir::Block ops) {
    for (Op& op : ops) {
      const auto* store = op.get<Store>();
      if (!store || store->stage) continue;
      Store changed = *store;
      changed.stage = chosen.stage_of.at(std::string(store->tile.str()));
      op = ir::make(std::move(changed), op.span());
    }
    return ops;
  });
}

}  // namespace nautilus::matile
