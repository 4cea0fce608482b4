// SPDX-License-Identifier: Apache-2.0
// Roles: which threads run which text, and what a role declares before its statements.
#pragma once

#include "emit/kernel/statements.h"

namespace nautilus::emit {

class RoleEmitter {
 public:
  explicit RoleEmitter(KernelScope& scope)
      : scope_(scope),
        out_(scope.out),
        rings_(scope),
        products_(scope),
        statements_(scope, rings_, products_) {}
  RoleEmitter(const RoleEmitter&) = delete;
  RoleEmitter& operator=(const RoleEmitter&) = delete;

  void run();

 private:
  void role_body(const matile::RoleInfo& role);
  bool uses(auto&& predicate) const {
    bool found = false;
    ir::for_each_op(scope_.role->op->body, [&](const ir::Op& op) { found |= predicate(op); });
    return found;
  }
  void cta(const matile::Cta& op);
  void rings();
  void turns();
  // Maps that the role copies with are fetched early.
  void prefetch_maps();
  // Whether the role stores through a staging buffer.
  bool stages();
  void tiles_cursor();

  KernelScope& scope_;
  Writer& out_;
  RingEmitter rings_;
  ProductEmitter products_;
  StatementEmitter statements_;
};

}  // namespace nautilus::emit
