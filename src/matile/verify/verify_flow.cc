// SPDX-License-Identifier: Apache-2.0
// Walks a role's ops with what is in flight: matrix groups in issue order with the slots and
// registers they read, slots held of each ring, turns entered. A loop's body must leave this state
// as it found it, so one walk decides for any number of iterations.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;

// A matrix group that was issued and not waited for.
struct Group {
  std::string acc;
  std::string a_tile;                              // empty: from shared memory
  std::vector<std::pair<std::string, int>> slots;  // ring, how many gets before the newest
  friend bool operator==(const Group&, const Group&) = default;
};

struct State {
  std::deque<Group> pending;        // oldest first
  std::map<std::string, int> held;  // slots of a ring
  std::set<std::string> entered;
  std::set<std::string> has_value;  // tiles that were written

  // What a loop's iterations must agree on.
  bool same_flight(const State& other) const {
    return pending == other.pending && held == other.held && entered == other.entered;
  }
};

class Flow {
 public:
  Flow(const Role& role, const Resources& resources, diag::Sink& sink)
      : role_(role), r_(resources), sink_(sink), tiles_(tiles_of_role(role)) {}

  void run() {
    block(role_.body);
    at_end("the role", {});
  }

 private:
  void fail(std::string message) {
    sink_.report(diag::Code::NotVerified, span_, std::move(message));
  }

  void block(const ir::Block& ops) {
    for (const Op& op : ops) {
      span_ = op.span();
      visit(op);
    }
  }

  void visit(const Op& op) {
    switch (kind(op)) {
      case Kind::Each: {
        const State before = s_;
        block(op.as<Each>().body);
        span_ = op.span();
        at_end("a tile", before.held);
        s_.has_value = before.has_value;
        return;
      }
      case Kind::Loop:
        return loop(op, op.as<Loop>().body);
      case Kind::Unroll:
        return loop(op, op.as<Unroll>().body);
      case Kind::If:
        return branch(op.as<If>());
      case Kind::Get:
        return get(op.as<Get>().ring);
      case Kind::Skip:
        if (held(op.as<Skip>().ring) > 0) fail("a skip while a slot of the ring is held");
        return;
      case Kind::Jump:
        if (held(op.as<Jump>().ring) > 0) fail("a jump while a slot of the ring is held");
        return;
      case Kind::Release:
        return release(op.as<Release>().ring);
      case Kind::Enter:
        if (!s_.entered.emplace(op.as<Enter>().turn.str()).second)
          fail(fmt::format("turn `{}` is entered twice", op.as<Enter>().turn.str()));
        return;
      case Kind::Leave:
        if (s_.entered.erase(std::string(op.as<Leave>().turn.str())) == 0)
          fail(fmt::format("turn `{}` is left without being entered", op.as<Leave>().turn.str()));
        return;
      case Kind::Dot:
        return dot(op.as<Dot>());
      case Kind::WarpDot: {
        const auto& d = op.as<WarpDot>();
        for (ir::Name name : {d.a, d.b}) {
          const RingInfo* ring = r_.part(name).first;
          if (ring && held(ring->op->name) == 0)
            fail(fmt::format("`{}` is an operand, but no slot of `{}` is held", name.str(),
                             ring->op->name.str()));
        }
        return writes(d.acc);
      }
      case Kind::Take: {
        const RingInfo* ring = r_.part(op.as<Take>().part).first;
        if (held(ring->op->name) == 0)
          fail(fmt::format("`{}` is taken, but no slot of `{}` is held", op.as<Take>().part.str(),
                           ring->op->name.str()));
        return writes(op.as<Take>().tile);
      }
      case Kind::Wait:
        return wait(op.as<Wait>());
      case Kind::Set:
        reads(op.as<Set>().value);
        return writes(op.as<Set>().target);
      case Kind::Fold:
        reads(op.as<Fold>().value);
        return writes(op.as<Fold>().target);
      case Kind::Lanes:
        read_tile(op.as<Lanes>().tile);
        return writes(op.as<Lanes>().tile);
      case Kind::Shares:
        read_tile(op.as<Shares>().tile);
        return writes(op.as<Shares>().tile);
      case Kind::Warps:
        read_tile(op.as<Warps>().tile);
        return writes(op.as<Warps>().tile);
      case Kind::Groups:
        read_tile(op.as<Groups>().tile);
        return writes(op.as<Groups>().tile);
      case Kind::Convert:
        read_tile(op.as<Convert>().source);
        return writes(op.as<Convert>().target);
      case Kind::Load: {
        const auto& load = op.as<Load>();
        if (load.condition) reads(load.condition);
        return writes(load.target);
      }
      case Kind::Forget:
        return read_tile(op.as<Forget>().tile);
      case Kind::Vote:
        return reads(op.as<Vote>().value);
      case Kind::Put:
        reads(op.as<Put>().value);
        if (op.as<Put>().condition) reads(op.as<Put>().condition);
        return;
      case Kind::Store: {
        const auto& store = op.as<Store>();
        read_tile(store.tile);
        const StageInfo* stage = r_.stage(store.stage);
        if (!stage || !stage->op->ring) return;
        if (held(stage->op->ring) == 0)
          fail(fmt::format("`{}` is staged on ring `{}`, of which no slot is held",
                           store.tile.str(), stage->op->ring.str()));
        for (const Group& g : s_.pending) {
          if (reads_ring(g, stage->op->ring))
            fail(fmt::format("`{}` is staged on ring `{}` while a product still reads its slot",
                             store.tile.str(), stage->op->ring.str()));
        }
        return;
      }
      default:
        return;
    }
  }

  int held(ir::Name ring) const {
    const auto it = s_.held.find(std::string(ring.str()));
    return it == s_.held.end() ? 0 : it->second;
  }

  static bool reads_ring(const Group& g, ir::Name ring) {
    return std::any_of(g.slots.begin(), g.slots.end(),
                       [&](const auto& slot) { return slot.first == ring.str(); });
  }

  void get(ir::Name name) {
    const RingInfo* ring = r_.ring(name);
    int& count = s_.held[std::string(name.str())];
    if (++count > ring->slots())
      fail(fmt::format("`{}` has {}, this role would hold {}", name.str(),
                       diag::counted(static_cast<size_t>(ring->slots()), "slot", "slots"), count));
    for (Group& g : s_.pending) {
      for (auto& slot : g.slots) {
        if (slot.first == name.str()) ++slot.second;
      }
    }
  }

  // R4 (b): a slot is given back only when no product reads it any more.
  void release(ir::Name name) {
    int& count = s_.held[std::string(name.str())];
    if (count == 0) return fail(fmt::format("no slot of `{}` is held", name.str()));
    const int oldest = count - 1;
    for (const Group& g : s_.pending) {
      const bool reads = std::any_of(g.slots.begin(), g.slots.end(), [&](const auto& slot) {
        return slot.first == name.str() && slot.second >= oldest;
      });
      if (!reads) continue;
      fail(
          fmt::format("the product into `{}` may still read the slot of `{}` that is released "
                      "here; a wait is missing before",
                      g.acc, name.str()));
      break;
    }
    if (--count == 0) s_.held.erase(std::string(name.str()));
  }

  // R4 (a): registers of products in flight are neither read nor written.
  void read_tile(ir::Name tile) {
    const std::string name(tile.str());
    if (!tiles_.contains(name)) return;  // a tensor in global memory
    for (const Group& g : s_.pending) {
      if (g.acc == name)
        fail(fmt::format("`{}` is read while the product into it runs; a wait is missing", name));
    }
    if (!s_.has_value.contains(name) && !in_branch_)
      fail(fmt::format("`{}` is read before it has a value", name));
    if (!loops_.empty()) loops_.back().insert(name);
  }

  void reads(Expr e) {
    for (ir::Name n : expr::tensors_read(e)) read_tile(n);
  }

  void writes(ir::Name tile) {
    const std::string name(tile.str());
    for (const Group& g : s_.pending) {
      if (g.acc == name)
        fail(
            fmt::format("`{}` is written while the product into it runs; a wait is missing", name));
      if (g.a_tile == name)
        fail(fmt::format("`{}` is written while the product into `{}` reads it; a wait is missing",
                         name, g.acc));
    }
    s_.has_value.insert(name);
  }

  void dot(const Dot& op) {
    Group group{std::string(op.acc.str()), "", {}};
    const auto part = [&](ir::Name name) {
      const auto [ring, info] = r_.part(name);
      if (held(ring->op->name) == 0)
        fail(fmt::format("`{}` is an operand, but no slot of `{}` is held", name.str(),
                         ring->op->name.str()));
      group.slots.emplace_back(ring->op->name.str(), 0);
    };
    if (tiles_.contains(op.a.str())) {
      read_tile(op.a);
      group.a_tile = op.a.str();
    } else {
      part(op.a);
    }
    part(op.b);
    const bool is_chain = !s_.pending.empty() && s_.pending.back().acc == group.acc;
    for (const Group& g : s_.pending) {
      if (g.acc != group.acc) continue;
      if (op.mode == DotMode::Init || !is_chain)
        fail(fmt::format("`{}` is written while the product into it runs; a wait is missing",
                         group.acc));
      break;
    }
    if (op.mode == DotMode::Add && !s_.has_value.contains(group.acc))
      fail(fmt::format("`{}` is added to before it has a value", group.acc));
    s_.has_value.insert(group.acc);
    s_.pending.push_back(std::move(group));
  }

  void wait(const Wait& op) {
    const auto leaves = static_cast<size_t>(op.leaves.value_or(0));
    if (op.acc) {
      const std::string name(op.acc.str());
      size_t after = 0;
      bool found = false;
      for (const Group& g : s_.pending) {
        if (g.acc == name) {
          found = true;
          after = 0;
        } else {
          ++after;
        }
      }
      if (!found)
        fail(fmt::format("no product into `{}` is in flight", name));
      else if (after != leaves)
        fail(fmt::format("{} later {} may run while waiting for `{}`, not {}", after,
                         after == 1 ? "group" : "groups", name, leaves));
    } else if (s_.pending.size() <= leaves) {
      fail(fmt::format("at most {} in flight here, the wait does nothing",
                       diag::counted(s_.pending.size(), "group is", "groups are")));
    }
    while (s_.pending.size() > leaves) s_.pending.pop_front();
  }

  void loop(const Op& op, const ir::Block& body) {
    const State before = s_;
    loops_.emplace_back();
    block(body);
    span_ = op.span();
    if (!s_.same_flight(before))
      fail("the loop's body does not leave slots, products and turns as it found them");
    // The assembler serialises matrix work otherwise.
    for (const Group& g : s_.pending) {
      if (loops_.back().contains(g.acc))
        fail(
            fmt::format("the product into `{}` is in flight over the end of a loop that reads `{}`",
                        g.acc, g.acc));
    }
    const std::set<std::string> read = std::move(loops_.back());
    loops_.pop_back();
    if (!loops_.empty()) loops_.back().insert(read.begin(), read.end());
    // The loop may run zero times.
    if (op.is<Loop>()) s_.has_value = before.has_value;
  }

  void branch(const If& op) {
    const State before = s_;
    const bool was_in_branch = in_branch_;
    // A value set in one branch and read in another of the same condition is not followed.
    const diag::Span span = span_;
    in_branch_ = true;
    block(op.body);
    in_branch_ = was_in_branch;
    span_ = span;
    if (!s_.same_flight(before))
      fail("the branch does not leave slots, products and turns as it found them");
    s_.has_value = before.has_value;
  }

  void at_end(std::string_view what, const std::map<std::string, int>& allowed) {
    if (!s_.pending.empty())
      fail(fmt::format("{} ends while the product into `{}` runs", what, s_.pending[0].acc));
    for (const auto& [ring, count] : s_.held) {
      const auto it = allowed.find(ring);
      if (count != (it == allowed.end() ? 0 : it->second))
        fail(fmt::format("{} ends while a slot of `{}` is held", what, ring));
    }
    if (!s_.entered.empty())
      fail(fmt::format("{} ends inside turn `{}`", what, *s_.entered.begin()));
  }

  const Role& role_;
  const Resources& r_;
  diag::Sink& sink_;
  RoleTiles tiles_;
  State s_;
  diag::Span span_;
  std::vector<std::set<std::string>> loops_;  // tiles read in each enclosing loop
  bool in_branch_ = false;
};

}  // namespace

RoleTiles tiles_of_role(const Role& role) {
  RoleTiles tiles;
  ir::for_each_op(role.body, [&](const Op& op) {
    if (const auto* t = op.get<Tile>()) tiles.emplace(t->name.str(), TileUse{t, layout_of(*t)});
  });
  return tiles;
}

void verify_flow(const Role& role, const Resources& resources, diag::Sink& sink) {
  Flow(role, resources, sink).run();
}

}  // namespace nautilus::matile
