// SPDX-License-Identifier: Apache-2.0
// Prints one kernel. kernel.cc has what stands around the roles: parameters, barriers;
// kernel_roles.cc the roles and what they declare; kernel_statements.cc blocks and loops;
// kernel_memory.cc what touches shared memory: rings, copies, products, staging.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "emit/elementwise.h"
#include "emit/emit.h"
#include "emit/expression.h"
#include "emit/instructions.h"
#include "emit/params.h"
#include "emit/vector.h"
#include "emit/writer.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "layout/descriptor.h"
#include "layout/stmatrix.h"

namespace nautilus::emit {

class KernelEmitter {
  using Expr = expr::Expr;
  using Op = ir::Op;
  using SlotTileInfo = matile::SlotTileInfo;
  using Resources = matile::Resources;
  using RingInfo = matile::RingInfo;
  using RoleInfo = matile::RoleInfo;

 public:
  KernelEmitter(const ir::Program& program, const matile::Kernel& kernel, expr::ExprPool& pool)
      : program_(program),
        kernel_(kernel),
        pool_(pool),
        r_(matile::resources_of(kernel, ir::target_of(program))) {}
  KernelText run();

 private:
  void know(expr::Facts& facts, ir::Name name, Expr value);

  // --- structure ----------------------------------------------------------------------------
  void header(const KernelText& text, bool is_followed);
  int ctas_beside() const;
  void describe();
  void roles();
  void role_body(const RoleInfo& role);
  bool uses(auto&& predicate) const {
    bool found = false;
    ir::for_each_op(role_->op->body, [&](const Op& op) { found |= predicate(op); });
    return found;
  }
  std::string group_text() const;
  static std::string ring_type(const RingInfo& ring);
  void rings();
  void turns();
  void stages();
  void tiles_cursor();
  void maps_and_descriptors();
  static layout::Operand operand(const SlotTileInfo& part, layout::Major major);
  std::string descriptor(ir::Name part_name, layout::Major major, Expr rows);

  // --- statements ---------------------------------------------------------------------------
  void define(ir::Name name) { locals_.emplace(name.str()); }
  std::string variable(Expr var) const;
  std::string text(Expr e) const;
  std::string list(const ir::Exprs& exprs) const;
  void block(const ir::Block& ops);
  void early_reads(const ir::Block& ops, size_t from);
  void statement(const Op& op);
  void cta(const matile::Cta& op);
  void prefetch(const matile::Prefetch& op);
  // Tiles are given to clusters.
  std::string first_tile() const { return per_cluster("block_index()"); }
  std::string tile_step() const { return per_cluster("block_count()"); }
  std::string per_cluster(std::string_view ctas) const;
  std::string rank() const { return fmt::format("block_index() % {}", r_.cluster); }
  Meeting meeting() const;
  static bool meet_at_once(const ir::Block& ops, size_t k);
  GroupMeeting meeting_of_groups(bool are_warps_apart) const;
  void tile(const matile::Tile& op);
  void each(const matile::Each& op);
  void loop(const matile::Loop& op);
  void unroll(const matile::Unroll& op);
  void fill(const matile::Fill& op);
  static std::string slot_address(const RingInfo& ring, const SlotTileInfo& part,
                                  const std::string& name);
  void get(ir::Name ring);
  void release(ir::Name ring);
  static std::string stepped(std::string_view base, uint32_t units);
  void dot(const matile::Dot& op);
  void take(const matile::Take& op);
  void take_row_piece(const SlotTileInfo& part, const std::string& name, int length);
  void warp_dot(const matile::WarpDot& op);
  void wait(const matile::Wait& op);
  void ticket(const matile::Ticket& op);
  void store(const matile::Store& op);
  static void check_store_formula(const layout::FragmentStore& f);

  const ir::Program& program_;
  const matile::Kernel& kernel_;
  expr::ExprPool& pool_;
  Resources r_;
  Writer out_;
  Instructions instructions_;
  GlobalTensors globals_;
  expr::Facts base_facts_;
  expr::Divisors divisors_;
  std::set<std::string, std::less<>> vectors_;
  // Of the role being printed:
  const RoleInfo* role_ = nullptr;
  RegisterScope scope_;
  expr::Facts facts_;
  std::set<std::string, std::less<>> locals_;
  std::vector<std::pair<std::tuple<ir::Name, layout::Major, Expr>, std::string>> descriptors_;
  std::map<std::string, ir::Name> a_of_;  // register operand of the last product into a tile
  std::map<std::string, int> held_;       // slots held of each ring
  std::vector<std::map<std::string, int>> held_stack_;
  bool stage_used_ = false;
};

}  // namespace nautilus::emit
