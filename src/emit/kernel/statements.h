// SPDX-License-Identifier: Apache-2.0
// Statements of a role: blocks, loops, scalars; longer texts have files of their own.
#pragma once

#include "emit/kernel/products.h"
#include "emit/kernel/rings.h"
#include "emit/meetings.h"
#include "emit/vector.h"

namespace nautilus::emit {

class StatementEmitter {
 public:
  StatementEmitter(KernelScope& scope, RingEmitter& rings, ProductEmitter& products)
      : scope_(scope), out_(scope.out), rings_(rings), products_(products) {}

  // The names of a block, and the facts about them, end with it.
  void block(const ir::Block& ops);

 private:
  void statement(const ir::Op& op);
  // Loads before a turn, without waiting for them: inside the turn a group would hold it for as
  // long as memory takes.
  void early_reads(const ir::Block& ops, size_t from);
  // `warps` directly before `groups`: one barrier serves both.
  static bool meet_at_once(const ir::Block& ops, size_t k);
  Meeting meeting() const;
  GroupMeeting meeting_of_groups(bool are_warps_apart) const;
  CtaMeeting meeting_of_ctas() const;
  void tile(const matile::Tile& op);
  void let(const matile::Let& op);
  void each(const matile::Each& op);
  void loop(const matile::Loop& op);
  void unroll(const matile::Unroll& op);
  void prefetch(const matile::Prefetch& op);
  void ticket(const matile::Ticket& op);

  KernelScope& scope_;
  Writer& out_;
  RingEmitter& rings_;
  ProductEmitter& products_;
};

}  // namespace nautilus::emit
