// SPDX-License-Identifier: Apache-2.0
// Walks a role's ops with what is in flight (flow_state.h) and asks the rules about slots, tiles
// and products. A loop's body must leave this state as it found it, so one walk decides for any
// number of iterations.
#include <fmt/format.h>

#include "ir/walk.h"
#include "matile/verify/flow_products.h"
#include "matile/verify/flow_slots.h"
#include "matile/verify/flow_tiles.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

using ir::Op;

class Flow {
 public:
  Flow(const Role& role, const Resources& resources, diag::Sink& sink)
      : role_(role),
        c_{resources, sink, tiles_of_role(role)},
        slots_(c_),
        tiles_(c_),
        products_(c_, slots_, tiles_) {}

  void run() {
    block(role_.body);
    at_end("the role", {});
  }

 private:
  void block(const ir::Block& ops) {
    for (const Op& op : ops) {
      c_.span = op.span();
      visit(op);
    }
  }

  void visit(const Op& op) {
    switch (kind(op)) {
      case Kind::Each:
        return each(op, op.as<Each>());
      case Kind::Loop:
        return loop(op, op.as<Loop>().body);
      case Kind::Unroll:
        return loop(op, op.as<Unroll>().body);
      case Kind::If:
        return branch(op.as<If>());
      case Kind::Get:
        return slots_.get(op.as<Get>().ring);
      case Kind::Skip:
        return slots_.pass(op.as<Skip>().ring, "skip");
      case Kind::Jump:
        return slots_.pass(op.as<Jump>().ring, "jump");
      case Kind::Release:
        return slots_.release(op.as<Release>().ring);
      case Kind::Enter:
        return enter(op.as<Enter>().turn);
      case Kind::Leave:
        return leave(op.as<Leave>().turn);
      case Kind::Dot:
        return products_.issue(op.as<Dot>());
      case Kind::WarpDot:
        return products_.compute(op.as<WarpDot>());
      case Kind::Wait:
        return products_.wait(op.as<Wait>());
      default:
        return move_data(op);
    }
  }

  // Ops between tiles, and from and to memory.
  void move_data(const Op& op) {
    switch (kind(op)) {
      case Kind::Take:
        return take(op.as<Take>());
      case Kind::Set:
        tiles_.read(op.as<Set>().value);
        return tiles_.write(op.as<Set>().target);
      case Kind::Fold:
        tiles_.read(op.as<Fold>().value);
        return tiles_.write(op.as<Fold>().target);
      case Kind::Lanes:
        return tiles_.update(op.as<Lanes>().tile);
      case Kind::Shares:
        return tiles_.update(op.as<Shares>().tile);
      case Kind::Warps:
        return tiles_.update(op.as<Warps>().tile);
      case Kind::Groups:
        return tiles_.update(op.as<Groups>().tile);
      case Kind::Ctas:
        return tiles_.update(op.as<Ctas>().tile);
      case Kind::Convert:
        tiles_.read(op.as<Convert>().source);
        return tiles_.write(op.as<Convert>().target);
      case Kind::Load:
        if (op.as<Load>().condition) tiles_.read(op.as<Load>().condition);
        return tiles_.write(op.as<Load>().target);
      case Kind::Forget:
        return tiles_.read(op.as<Forget>().tile);
      case Kind::Vote:
        return tiles_.read(op.as<Vote>().value);
      case Kind::Put:
        tiles_.read(op.as<Put>().value);
        if (op.as<Put>().condition) tiles_.read(op.as<Put>().condition);
        return;
      case Kind::Store:
        tiles_.read(op.as<Store>().tile);
        return slots_.stage(op.as<Store>());
      default:
        return;
    }
  }

  void take(const Take& op) {
    slots_.check_held(op.slot_tile, c_.resources.slot_tile(op.slot_tile).first->op->name, "taken");
    tiles_.write(op.tile);
  }

  void enter(ir::Name turn) {
    if (!c_.state.entered.emplace(turn.str()).second)
      c_.fail(fmt::format("turn `{}` is entered twice", turn.str()));
  }

  void leave(ir::Name turn) {
    if (c_.state.entered.erase(std::string(turn.str())) == 0)
      c_.fail(fmt::format("turn `{}` is left without being entered", turn.str()));
  }

  void each(const Op& op, const Each& tiles) {
    const FlowState before = c_.state;
    block(tiles.body);
    c_.span = op.span();
    at_end("a tile", before.held);
    c_.state.has_value = before.has_value;
  }

  void loop(const Op& op, const ir::Block& body) {
    const FlowState before = c_.state;
    tiles_.enter_loop();
    block(body);
    c_.span = op.span();
    if (!c_.state.same_flight(before))
      c_.fail("the loop's body does not leave slots, products and turns as it found them");
    tiles_.leave_loop();
    // The loop may run zero times.
    if (op.is<Loop>()) c_.state.has_value = before.has_value;
  }

  void branch(const If& op) {
    const FlowState before = c_.state;
    const diag::Span span = c_.span;
    const bool was_in_branch = tiles_.set_in_branch(true);
    block(op.body);
    tiles_.set_in_branch(was_in_branch);
    c_.span = span;
    if (!c_.state.same_flight(before))
      c_.fail("the branch does not leave slots, products and turns as it found them");
    c_.state.has_value = before.has_value;
  }

  void at_end(std::string_view what, const std::map<std::string, int>& allowed) {
    const FlowState& s = c_.state;
    if (!s.pending.empty())
      c_.fail(fmt::format("{} ends while the product into `{}` runs", what, s.pending[0].acc));
    for (const auto& [ring, count] : s.held) {
      const auto it = allowed.find(ring);
      if (count != (it == allowed.end() ? 0 : it->second))
        c_.fail(fmt::format("{} ends while a slot of `{}` is held", what, ring));
    }
    if (!s.entered.empty())
      c_.fail(fmt::format("{} ends inside turn `{}`", what, *s.entered.begin()));
  }

  const Role& role_;
  FlowContext c_;
  SlotFlow slots_;
  TileFlow tiles_;
  ProductFlow products_;
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
