// SPDX-License-Identifier: Apache-2.0
// Slots of rings: filled by copies, got and released by those that read them.
#pragma once

#include <map>
#include <string>

#include "emit/kernel/kernel_scope.h"

namespace nautilus::emit {

class RingEmitter {
 public:
  using Held = std::map<std::string, int>;  // slots held of each ring

  explicit RingEmitter(KernelScope& scope) : scope_(scope), out_(scope.out) {}

  void fill(const matile::Fill& op);
  void get(ir::Name ring);
  void release(ir::Name ring);

  // A loop ends with as many slots as it began with.
  const Held& held() const { return held_; }
  void set_held(const Held& held) { held_ = held; }

 private:
  KernelScope& scope_;
  Writer& out_;
  Held held_;
};

}  // namespace nautilus::emit
