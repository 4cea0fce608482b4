// SPDX-License-Identifier: Apache-2.0
// Scalars of a role that are read from memory. Every role reads them on its own, at its own time:
// they agree because kernels with roles write no integers, so the tensor does not change meanwhile.
#include <fmt/format.h>

#include <set>

#include "expr/walk.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
std::string number_problem(ir::Expr e, const ir::Program& program) {
  std::set<std::string> tensors;
  for (const ir::Op& op : program.body) {
    const auto* t = op.get<Tensor>();
    if (t && t->role != TensorRole::Scratch) tensors.emplace(t->name.str());
  }
  for (ir::Name n : expr::tensors_read(e)) {
    if (!tensors.contains(std::string(n.str())))
      return fmt::format("a scalar reads `{}`, which is not the same for all threads", n.str());
  }
  bool is_small = expr::is_int(e.dtype());
  expr::for_each(e, [&](ir::Expr x) {
    is_small &= !expr::is_float(x.dtype());
    if (x.op() == expr::Op::Read)
      is_small &= expr::is_int(x.dtype()) && expr::bytes(x.dtype()) <= 4;
  });
  if (!is_small) return "a scalar that is read from memory is an integer of at most 32 bits";
  return "";
}

}  // namespace nautilus::matile
