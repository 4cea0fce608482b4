// SPDX-License-Identifier: Apache-2.0
// The shared state of the printer of one kernel (kernel_emitter.h): the kernel and its resources,
// the text so far, and the names and facts of the role that is being printed.
#pragma once

#include <set>
#include <string>

#include "emit/elementwise.h"
#include "emit/expression.h"
#include "emit/instructions.h"
#include "emit/params.h"
#include "emit/writer.h"
#include "ir/target_of.h"
#include "ir/walk.h"

namespace nautilus::emit {

struct KernelScope {
  KernelScope(const ir::Program& of, const matile::Kernel& printed, expr::ExprPool& given_pool);
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

  // Names, facts and register tiles are from now on those of the role.
  void begin_role(const matile::RoleInfo& printed);

  void define(ir::Name name) { locals.emplace(name.str()); }
  // Division of a variable that is known not to be negative is that of C++.
  void know(expr::Facts& known, ir::Name name, expr::Expr value) const;

  std::string variable(expr::Expr var) const;
  std::string text(expr::Expr e) const;
  // Each after a comma.
  std::string list(const ir::Exprs& exprs) const;

  // The number of the warp group in its role.
  std::string group_text() const;
  // Tiles are given to clusters.
  std::string first_tile() const { return per_cluster("block_index()"); }
  std::string tile_step() const { return per_cluster("block_count()"); }
  std::string rank() const { return fmt::format("block_index() % {}", resources.cluster); }

  static std::string ring_type(const matile::RingInfo& ring);
  // A slot tile at the ring's cursor; for a ring with copies for each group, in the first copy or
  // in that of this group.
  static std::string slot_address(const matile::RingInfo& ring,
                                  const matile::SlotTileInfo& slot_tile);
  std::string own_slot_address(const matile::RingInfo& ring,
                               const matile::SlotTileInfo& slot_tile) const;

  const ir::Program& program;
  const matile::Kernel& kernel;
  expr::ExprPool& pool;
  matile::Resources resources;
  Writer out;
  Instructions instructions;
  GlobalTensors globals;
  expr::Facts base_facts;
  expr::Divisors divisors;
  std::set<std::string, std::less<>> vectors;  // tensors that are moved in pieces
  // Of the role:
  const matile::RoleInfo* role = nullptr;
  RegisterScope registers;
  expr::Facts facts;
  std::set<std::string, std::less<>> locals;

 private:
  std::string per_cluster(std::string_view ctas) const;
};

}  // namespace nautilus::emit
