// SPDX-License-Identifier: Apache-2.0
#include "ir/sizes.h"

namespace nautilus::ir {

NAUT_DEFINE_OP(Machine)
NAUT_DEFINE_OP(Size)

void compute_sizes(const Program& program, Environment& env) {
  for (const Op& op : program.body) {
    if (const auto* m = op.get<Machine>())
      env.sizes.insert_or_assign(std::string(m->name.str()), kInterpretedSms);
    if (const auto* s = op.get<Size>())
      env.sizes.insert_or_assign(std::string(s->name.str()), evaluate_size(s->value, env));
  }
}

}  // namespace nautilus::ir
