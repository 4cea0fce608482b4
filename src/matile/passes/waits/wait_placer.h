// SPDX-License-Identifier: Apache-2.0
// The waits and releases of one role while they are placed (place_waits.h).
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decision/choice.h"
#include "ir/pass.h"
#include "matile/passes/roles/ring_sequence.h"
#include "matile/rewrite.h"

namespace nautilus::matile {

class WaitPlacer {
 public:
  WaitPlacer(const ir::Program& program, const Kernel& kernel, const Role& role,
             decision::Choice<decision::InFlight>& in_flight, ir::PassContext& context)
      : kernel_(kernel),
        in_flight_(in_flight),
        role_(role),
        pool_(context.pool),
        sink_(context.sink),
        scalars_(program, kernel, role, context.pool) {
    for (const ir::Op& op : kernel.body) {
      if (const auto* stage = op.get<Stage>(); stage && stage->ring)
        staged_on_.emplace(stage->name.str(), stage->ring.str());
      const auto* ring = op.get<Ring>();
      if (!ring) continue;
      slots_.emplace(ring->name.str(), static_cast<int>(ring->slots.value_or(1)));
      for (const ir::Op& slot_tile : ring->body)
        ring_of_.emplace(slot_tile.as<SlotTile>().name.str(), ring->name.str());
    }
  }

  std::optional<Role> run();

 private:
  // A product that was issued and not waited for.
  struct Group {
    ir::Name acc;
    ir::Name a;
    std::vector<std::pair<std::string, int>> slots;  // ring, number of the slot
  };
  // The position of the walk: the ops after it in this block.
  struct Frame {
    const ir::Block* block;
    size_t next;
    bool is_loop;
  };
  enum class Next : uint8_t { Read, Got, None };

  void refuse(std::string message);
  ir::Block walk(const ir::Block& ops, bool is_loop);
  void visit(const ir::Op& op, ir::Block& out);
  void visit_all(const ir::Block& ops, bool is_loop, ir::Block& out);
  const ir::Op* reader_of(const Take& take) const;

  // Products in flight.
  void wait_through(size_t count, ir::Block& out);
  void wait_all(ir::Block& out);
  void wait_before(ir::Block& out);
  void touch(const ir::Op& op, ir::Block& out);
  void dot(const ir::Op& op, ir::Block& out);

  // wait_placer_slots.cc
  int slot_of(ir::Name slot_tile);
  void get(const ir::Op& op, ir::Block& out);
  void wait_for_slot(const std::string& ring, int slot, ir::Block& out);
  void drain_ring(ir::Name name, ir::Block& out);
  void release(ir::Block& out);
  bool is_read_in_flight(const std::string& ring, int slot) const;
  bool is_slot_tile_of(ir::Name slot_tile, const std::string& ring) const;
  Next first_use(const ir::Op& op, const std::string& ring) const;
  Next first_use(const ir::Block& block, size_t from, size_t to, const std::string& ring) const;
  bool is_read_later(const std::string& ring) const;

  // wait_placer_loops.cc
  void region(const ir::Op& op, ir::Block& out, bool is_loop);
  static bool is_product_loop(const Loop& loop);
  bool take_zero(ir::Name acc, ir::Block& out);
  bool can_lag(const Loop& loop);
  void product_loop(const ir::Op& op, ir::Block& out);
  bool is_computed_loop(const Loop& loop);
  void computed_loop(const ir::Op& op, ir::Block& out);

  const Kernel& kernel_;
  decision::Choice<decision::InFlight>& in_flight_;
  const Role& role_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  Scalars scalars_;
  std::map<std::string, std::string, std::less<>> ring_of_;  // by slot tile
  std::map<std::string, std::string, std::less<>> staged_on_;
  std::map<std::string, int, std::less<>> slots_;
  std::deque<Group> pending_;
  std::map<std::string, std::deque<int>, std::less<>> held_;
  std::map<std::string, const ir::Op*, std::less<>> readers_;  // by ring: of tiles taken from it
  std::vector<Frame> frames_;
  int next_slot_ = 0;
  bool is_refused_ = false;
};

}  // namespace nautilus::matile
