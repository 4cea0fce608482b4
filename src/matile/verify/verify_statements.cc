// SPDX-License-Identifier: Apache-2.0
// Which rule is for which statement of a role.
#include <fmt/format.h>

#include "matile/verify/verify_role.h"

namespace nautilus::matile {

using expr::DType;
using ir::Op;

void RoleVerifier::statement(const Op& op, bool is_uniform) {
  const Kind k = kind(op);
  const bool is_register_work =
      k == Kind::Set || k == Kind::Fold || k == Kind::Lanes || k == Kind::Shares ||
      k == Kind::Vote || k == Kind::Put || k == Kind::Let || k == Kind::WarpDot ||
      (k == Kind::Convert && op.as<Convert>().kind != ConvertKind::Shared);
  if (!is_uniform && !is_register_work)
    return v_.fail(
        fmt::format("`{}` under a vote: only register work may stand there", op.info().mnemonic()));
  if (!control(op, is_uniform) && !exchange(op) && !register_work(op))
    v_.fail(fmt::format("`{}` does not stand in a role", op.info().mnemonic()));
}

// Names, loops and branches. False if the op is another one; so are those below.
bool RoleVerifier::control(const Op& op, bool is_uniform) {
  switch (kind(op)) {
    case Kind::Tile:
      tile(op.as<Tile>());
      return true;
    case Kind::Let:
      number(op.as<Let>().value);
      local(op.as<Let>().name, op.as<Let>().value.dtype());
      return true;
    case Kind::Each:
      each(op.as<Each>());
      return true;
    case Kind::Loop:
      scalar(op.as<Loop>().from, DType::I64, "the first value");
      scalar(op.as<Loop>().to, DType::I64, "the last value");
      body(op.as<Loop>().var, op.as<Loop>().body);
      return true;
    case Kind::Unroll:
      unroll(op.as<Unroll>());
      return true;
    case Kind::If:
      branch(op.as<If>(), is_uniform);
      return true;
    case Kind::Ticket:
      ticket(op.as<Ticket>());
      return true;
    default:
      return false;
  }
}

void RoleVerifier::branch(const If& op, bool is_uniform) {
  if (is_vote(op.condition))
    v_.check(op.condition, "the condition");
  else
    scalar(op.condition, DType::Bool, "the condition");
  const bool was_behind = e_.is_behind_ticket();
  e_.set_behind_ticket(was_behind || is_ticket(op.condition));
  block(op.body, is_uniform && !is_vote(op.condition));
  e_.set_behind_ticket(was_behind);
}

// Rings and turns, and products and transfers, which go on while the role does something else.
bool RoleVerifier::exchange(const Op& op) {
  switch (kind(op)) {
    case Kind::Fill:
      fill(op.as<Fill>());
      return true;
    case Kind::Get:
      ring(op.as<Get>().ring);
      return true;
    case Kind::Release:
      ring(op.as<Release>().ring);
      return true;
    case Kind::Skip:
      ring(op.as<Skip>().ring);
      return true;
    case Kind::Jump:
      scalar(op.as<Jump>().slots, DType::I64, "the number of slots");
      ring(op.as<Jump>().ring);
      return true;
    case Kind::Enter:
      turn(op.as<Enter>().turn);
      return true;
    case Kind::Leave:
      turn(op.as<Leave>().turn);
      return true;
    case Kind::Dot:
      dot(op.as<Dot>());
      return true;
    case Kind::Wait:
      if (op.as<Wait>().leaves.value_or(-1) < 0) v_.fail("a wait leaves 0 or more groups");
      if (op.as<Wait>().acc) find_tile(op.as<Wait>().acc);
      return true;
    case Kind::Take:
      take(op.as<Take>());
      return true;
    case Kind::Load:
      e_.load(op.as<Load>());
      return true;
    case Kind::Prefetch:
      e_.prefetch(op.as<Prefetch>());
      return true;
    case Kind::Store:
      store(op.as<Store>());
      return true;
    default:
      return false;
  }
}

// What is computed of tiles in registers.
bool RoleVerifier::register_work(const Op& op) {
  switch (kind(op)) {
    case Kind::WarpDot:
      warp_dot(op.as<WarpDot>());
      return true;
    case Kind::Set:
      e_.set(op.as<Set>());
      return true;
    case Kind::Fold:
      e_.fold(op.as<Fold>());
      return true;
    case Kind::Lanes:
      find_tile(op.as<Lanes>().tile);
      if (!ElementRules::is_foldable(op.as<Lanes>().reducer))
        v_.fail("lanes combine by sum, max or min");
      return true;
    case Kind::Shares:
      find_tile(op.as<Shares>().tile);
      if (op.as<Shares>().reducer != expr::Reducer::Sum)
        v_.fail("only a sum has equal shares: of a maximum every lane may keep the whole");
      return true;
    case Kind::Warps:
      warps(op.as<Warps>());
      return true;
    case Kind::Groups:
      groups(op.as<Groups>());
      return true;
    case Kind::Ctas:
      ctas(op.as<Ctas>());
      return true;
    case Kind::Convert:
      convert(op.as<Convert>());
      return true;
    case Kind::Forget: {
      const TileUse* tile = find_tile(op.as<Forget>().tile);
      if (tile && !is_half(tile->op->type.dtype)) v_.fail("`forget` is for tiles of 16-bit floats");
      return true;
    }
    case Kind::Vote:
      e_.vote(op.as<Vote>());
      local(op.as<Vote>().name, DType::Bool);
      votes_.emplace(op.as<Vote>().name.str());
      return true;
    case Kind::Put:
      e_.put(op.as<Put>());
      return true;
    default:
      return false;
  }
}

}  // namespace nautilus::matile
