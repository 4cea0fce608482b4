// SPDX-License-Identifier: Apache-2.0
// Prints one kernel: its parameters, the function's head and its barriers. roles.h prints what
// threads run.
#pragma once

#include "emit/emit.h"
#include "emit/kernel/kernel_scope.h"

namespace nautilus::emit {

class KernelEmitter {
 public:
  KernelEmitter(const ir::Program& program, const matile::Kernel& kernel, expr::ExprPool& pool)
      : scope_(program, kernel, pool), out_(scope_.out) {}
  KernelText run();

 private:
  // Facts about sizes that hold for every launch of the kernel.
  void learn_facts();
  void describe();
  void header(const KernelText& text, bool is_followed);
  void barriers();
  int ctas_together() const;

  KernelScope scope_;
  Writer& out_;
};

}  // namespace nautilus::emit
