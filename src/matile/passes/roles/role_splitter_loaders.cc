// SPDX-License-Identifier: Apache-2.0
// The loading roles: a warp for each sequence of copies.
#include <fmt/format.h>

#include <algorithm>

#include "decision/lines.h"
#include "matile/passes/roles/role_splitter.h"

namespace nautilus::matile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

// Every ring of more than one fetch a tile has a warp of its own, so that none waits for another;
// the others go with the first.
bool RoleSplitter::assign_loaders() {
  int next = 0;
  for (NestRing& ring : rings_) {
    if (ring.sequence.kind == RingSequence::Kind::Once) continue;
    ring.loader = next++;
  }
  const int warps = loader_warps();
  for (NestRing& ring : rings_) {
    if (!ring.asked.loader) continue;
    ring.loader = static_cast<int>(*ring.asked.loader);
    if (ring.loader >= 0 && ring.loader < warps) continue;
    decision::refuse(ir::make(ring.asked), fmt::format("loader warps are 0 to {}", warps - 1),
                     context_);
    return false;
  }
  if (std::any_of(rings_.begin(), rings_.end(),
                  [&](const NestRing& r) { return r.loader >= warps; })) {
    refuse(fmt::format("it has more than {} independent sequences of copies", warps));
    return false;
  }
  return true;
}

void RoleSplitter::fill(const NestRing& ring, const std::vector<Fetch>& fetches, ir::Block& to) {
  Fill out{ring.name, {}, {}};
  std::vector<std::pair<Expr, Expr>> read;
  expr::Substitution group;
  if (ring.is_per_group) {
    out.group = fresh_name("group", taken_, pool_);
    group.emplace(pool_.index(role_.index), pool_.index(out.group));
  }
  for (const Fetch& f : fetches) {
    Copy copy{f.slot_tile, f.map, {}, {}};
    for (Expr e : f.at) {
      const Expr written = ring.is_per_group ? scalars_.without_group_lets(e) : e;
      const Expr at = expr::substitute(pool_, written, group);
      copy.at.push_back(ring.is_per_group ? at : read_first(at, read, to));
    }
    const int64_t panels = panels_of(ring, f);
    const int64_t width = maps_.find(f.map.str())->second.box[0].integer();
    const Expr first = copy.at[0];
    for (int64_t p = 0; p < panels; ++p) {
      if (panels > 1) copy.panel = p;
      copy.at[0] = plus(first, p * width);
      out.body.push_back(ir::make(copy));
    }
  }
  to.push_back(ir::make(std::move(out)));
}

// A coordinate that is read from memory is a scalar before the copies.
Expr RoleSplitter::read_first(Expr at, std::vector<std::pair<Expr, Expr>>& read, ir::Block& to) {
  if (expr::tensors_read(at).empty()) return at;
  for (const auto& [value, name] : read) {
    if (value == at) return name;
  }
  const ir::Name name = fresh_name("at", taken_, pool_);
  to.push_back(ir::make(Let{name, at}));
  read.emplace_back(at, pool_.index(name));
  return read.back().second;
}

// How many boxes fill the slot tile: one, or one for each panel.
int64_t RoleSplitter::panels_of(const NestRing& ring, const Fetch& f) const {
  const Map& map = maps_.find(f.map.str())->second;
  int64_t elements = 1;
  for (Expr b : map.box) elements *= b.integer();
  for (const SlotTile& slot_tile : ring.ops) {
    if (slot_tile.name != f.slot_tile) continue;
    return slot_tile.type.dims[0].integer() * slot_tile.type.dims[1].integer() / elements;
  }
  return 1;
}

std::optional<Role> RoleSplitter::loader_role(int warp, int64_t registers) {
  std::vector<const NestRing*> mine;
  for (const NestRing& ring : rings_) {
    if (ring.loader == warp) mine.push_back(&ring);
  }
  if (mine.empty()) return std::nullopt;
  std::vector<const NestRing*> once;
  const NestRing* repeated = nullptr;
  for (const NestRing* ring : mine) {
    if (ring->sequence.kind == RingSequence::Kind::Once) {
      once.push_back(ring);
    } else if (repeated) {
      refuse(fmt::format("`{}` and `{}` are loaded by one warp", repeated->slot_tiles[0],
                         ring->slot_tiles[0]));
      return std::nullopt;
    } else {
      repeated = ring;
    }
  }
  ir::Block body = shared_lets();
  const auto fill_once = [&](ir::Block& to) {
    for (const NestRing* ring : once) fill(*ring, ring->sequence.fetches, to);
  };
  if (!repeated) {
    fill_once(body);
  } else if (repeated->sequence.kind == RingSequence::Kind::Range) {
    const RingSequence& s = repeated->sequence;
    const auto shared = shared_.find(repeated->name.str());
    const Expr from = shared == shared_.end() ? s.from : shared->second.from;
    const Expr to = shared == shared_.end() ? s.to : shared->second.to;
    const bool is_up = s.direction == Direction::Up;
    Loop loop{s.var, from, s.direction, to, {}};
    fill(*repeated, s.fetches, loop.body);
    const bool runs = is_up ? scalars_.is_at_least(plus(to, -1), from) || runs_once(s)
                            : scalars_.is_at_least(from, to) || runs_once(s);
    if (!once.empty() && runs) {
      // The slot of a ring with one slot becomes free late; a step of the loop comes before it.
      If first{pool_.binary(EK::Eq, pool_.index(s.var), from), {}};
      fill_once(first.body);
      loop.body.push_back(ir::make(std::move(first)));
    } else {
      fill_once(body);
    }
    body.push_back(ir::make(std::move(loop)));
  } else {
    fill_once(body);
    for (Op& op : projection(each_->body, *repeated)) body.push_back(std::move(op));
  }
  std::string name = "load";
  if (warp > 0) name += "_" + mine[0]->slot_tiles[0];
  Each each{each_->var, each_->tiles, {}, std::move(body)};
  return Role{fresh_name(name, taken_, pool_), RoleUnit::Warp, warp, {}, registers,
              {ir::make(std::move(each))}};
}

// The group's own range is not empty, hence the loader's is not.
bool RoleSplitter::runs_once(const RingSequence& s) const {
  return s.direction == Direction::Up ? scalars_.is_at_least(s.to, plus_one(s.from))
                                      : scalars_.is_at_least(s.from, s.to);
}

// The nest with only the fills of a ring.
ir::Block RoleSplitter::projection(const ir::Block& block, const NestRing& ring) {
  ir::Block out;
  std::vector<Fetch> pending;
  for (const Op& op : block) {
    if (const auto* f = op.get<Fetch>()) {
      if (std::find(ring.slot_tiles.begin(), ring.slot_tiles.end(), f->slot_tile.str()) ==
          ring.slot_tiles.end())
        continue;
      pending.push_back(*f);
      if (pending.size() < ring.slot_tiles.size()) continue;
      fill(ring, pending, out);
      pending.clear();
      continue;
    }
    const ir::Block* inner = block_of(op);
    if (!inner) continue;
    ir::Block kept = projection(*inner, ring);
    if (!kept.empty()) out.push_back(with_block(op, std::move(kept)));
  }
  return out;
}

// Scalars that all groups share, and the common bounds after the scalars they are made of.
ir::Block RoleSplitter::shared_lets() {
  ir::Block out;
  for (const Op& op : each_->body) {
    const auto* let = op.get<Let>();
    if (let && !scalars_.depends_on_group(let->value)) out.push_back(op);
  }
  for (const auto& [value, name] : bounds_) out.push_back(ir::make(Let{name, value}));
  return out;
}

}  // namespace nautilus::matile
