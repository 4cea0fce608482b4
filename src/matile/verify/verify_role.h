// SPDX-License-Identifier: Apache-2.0
// Names, shapes and places inside one kernel. The rules of a role stand in verify_role.cc
// (blocks, scalars, register tiles), verify_lane_rows.cc (tiles of a few
// lanes), verify_transfers.cc (data on its way) and verify_products.cc;
// verify_statements.cc finds them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/verify.h"
#include "matile/verify/verify_elements.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {

// What the rules know about the kernel and the plan around it.
struct KernelScope {
  const ir::Program& program;
  const ElementRules::TensorRoles& tensors;
  const KernelMaps& maps;
  ir::Verifier& verifier;
  std::set<std::string> names = {};  // of the kernel's declarations
  Resources resources = {};          // valid once the declarations are

  // Declares a name of the kernel; reports and returns false if the name is in use.
  bool declare(ir::Name name);
  bool is_scratch(ir::Name tensor) const;
};

// Checks each declaration by itself.
void verify_declarations(const Kernel& kernel, KernelScope& scope);
// Checks the roles and rings that declarations name; needs `scope.resources`.
void verify_references(const Kernel& kernel, const KernelScope& scope);

class RoleVerifier {
 public:
  RoleVerifier(const Kernel& kernel, KernelScope& scope);

  void run(const Role& role);

 private:
  // Under a vote warps differ, so only register work is allowed there: `is_uniform` is false.
  void block(const ir::Block& ops, bool is_uniform);
  void statement(const ir::Op& op, bool is_uniform);
  bool control(const ir::Op& op, bool is_uniform);
  bool exchange(const ir::Op& op);
  bool register_work(const ir::Op& op);
  void branch(const If& op, bool is_uniform);
  void body(ir::Name var, const ir::Block& ops);
  void each(const Each& op);
  void lanes_of_rows(const Each& op);
  void lanes_of_tiles();
  void unroll(const Unroll& op);

  void local(ir::Name name, expr::DType dtype);
  void scalar(expr::Expr e, expr::DType dtype, std::string_view what);
  void number(expr::Expr e);
  bool is_ticket(expr::Expr e) const;
  bool is_vote(expr::Expr e) const;
  bool is_compute() const { return role_->unit == RoleUnit::Groups; }

  void tile(const Tile& t);
  void row_vector(const Tile& t, const std::vector<int>& shape);
  const TileUse* find_tile(ir::Name name) { return e_.find_tile(name); }
  void warps(const Warps& op);
  void groups(const Groups& op);
  void ctas(const Ctas& op);
  void convert(const Convert& op);
  void ring(ir::Name name);
  void turn(ir::Name name);
  void ticket(const Ticket& op);

  void fill(const Fill& op);
  void copy(const Copy& c, const RingInfo& ring_info, std::set<std::string>& filled);
  void share(const Copy& c, const Map& m, const SlotTileInfo& slot_tile);
  const Map* coordinates(ir::Name name, const ir::Exprs& at);
  void take(const Take& op);
  int64_t first_column(expr::Expr cols);
  void store(const Store& op);

  void dot(const Dot& op);
  // What an instruction computes: its dtypes, columns and depth.
  struct Instruction;
  void instruction(const Dot& op, const Instruction& i);
  void register_operand(const Dot& op, const Tile& a, const Instruction& i);
  void shared_operand(const Dot& op, const SlotTileInfo& a, const Instruction& i);
  void warp_dot(const WarpDot& op);
  static constexpr int64_t kSwizzleRows = 8;
  void first_row(expr::Expr rows, int64_t step = kSwizzleRows);

  KernelScope& scope_;
  const Resources& r_;
  ir::Verifier& v_;
  const Role* role_ = nullptr;
  int depth_ = 0;  // of blocks
  bool has_each_ = false;
  ir::OptionalInt lanes_of_each_;
  RoleTiles tiles_;
  std::map<std::string, int> unrolled_;
  std::set<std::string> tickets_;
  std::set<std::string> votes_;
  ElementRules e_;
};

}  // namespace nautilus::matile
