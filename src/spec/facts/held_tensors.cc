// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/held_tensors.h"

#include "algebra/exact_halves.h"
#include "expr/walk.h"
#include "spec/scans.h"

namespace nautilus::spec {

HeldTensors::HeldTensors(const ir::Program& program, expr::ExprPool& pool) : pool_(pool) {
  const std::unordered_set<ir::Name> scanned = scanned_tensors(program);
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let || let->dtype != expr::DType::F32 || scanned.contains(let->name)) continue;
    const algebra::ExactHalves held = algebra::exact_halves(marked(let->body));
    // A copy of integers licenses nothing, as they do not themselves.
    if (held.any() && held.is_stored_float)
      held_.emplace(let->name, held.choose(expr::DType::BF16));
  }
}

expr::Expr HeldTensors::marked(expr::Expr e) const {
  if (held_.empty()) return e;
  return expr::rebuild(pool_, e, [&](expr::Expr x) {
    if (x.op() != expr::Op::Read || x.dtype() != expr::DType::F32) return x;
    const auto it = held_.find(x.name());
    return it == held_.end() ? x : pool_.cast(x.dtype(), pool_.cast(it->second, x));
  });
}

}  // namespace nautilus::spec
