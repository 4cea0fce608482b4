// SPDX-License-Identifier: Apache-2.0
#include "ir/target_of.h"

#include "base/check.h"
#include "ir/decl.h"

namespace nautilus::ir {

const target::Target& target_of(const Program& program) {
  for (const Op& op : program.body) {
    const auto* t = op.get<Target>();
    if (!t) continue;
    const target::Target* found = target::find_target(t->name.str());
    NAUT_CHECK(found, "the target `{}` was verified and is not there", t->name.str());
    return *found;
  }
  return target::default_target();
}

Program with_target(Program program, const target::Target& target, expr::ExprPool& pool) {
  std::erase_if(program.body, [](const Op& op) { return op.is<Target>(); });
  if (&target != &target::default_target())
    program.body.insert(program.body.begin(), make(Target{pool.name(target.name)}));
  return program;
}

}  // namespace nautilus::ir
