// SPDX-License-Identifier: Apache-2.0
#include "emit/kernel_emitter.h"

namespace nautilus::emit {

void KernelEmitter::prefetch(const matile::Prefetch& op) {
  const std::string tensor(op.value.name().str());
  const GlobalTensor& global = globals_.find(tensor)->second;
  vectors_.emplace(tensor);  // the plan looks at its alignment
  std::string at;
  for (size_t k = 0; k + 1 < op.value.args().size(); ++k)
    at += (at.empty() ? "" : " + ") + global.step(text(op.value[k]), k);
  const std::string condition = op.condition ? fmt::format(" && ({})", text(op.condition)) : "";
  out_.line("if (thread % 128 == 0{}) prefetch_cache(p.{}, {}, (u64)({}) * {});", condition,
            identifier(tensor), at.empty() ? "0" : at, text(op.count),
            expr::bytes(global.type.dtype));
}

}  // namespace nautilus::emit
