// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/store_narrow.h"

#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;

bool is_widened_half(Expr e) {
  if (e.op() != expr::Op::Cast || e.dtype() != DType::F32) return false;
  // A plain element of a tensor is in memory already.
  return is_half(e[0].dtype()) && e[0].op() == expr::Op::Cast;
}

}  // namespace

std::optional<ir::Program> store_narrow(const ir::Program& program, ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  const std::unordered_set<ir::Name> kept = output_set(program);
  std::unordered_map<ir::Name, DType> narrow;
  return map_equations(program, [&](const Let& let) {
    Let out = map_reads(let, pool, [&](Expr read) {
      const auto it = narrow.find(read.name());
      if (it == narrow.end()) return read;
      return pool.cast(read.dtype(), pool.read(read.name(), it->second, read.args()));
    });
    if (!kept.contains(let.name) && is_widened_half(out.body)) {
      out.body = out.body[0];
      out.dtype = out.body.dtype();
      narrow.emplace(let.name, out.dtype);
    }
    return out;
  });
}

}  // namespace nautilus::spec
