// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/store_narrow.h"

#include "algebra/exact_halves.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;

// The equation's numbers in 16 bits; null if those do not hold them, or if they are a plain element
// of a tensor, which is in memory already.
Expr in_half(Expr e, expr::ExprPool& pool) {
  if (e.dtype() != DType::F32 || e.op() == expr::Op::Read) return {};
  if (e.op() == expr::Op::Cast && expr::is_half(e[0].dtype()))
    return e[0].op() == expr::Op::Cast ? e[0] : Expr();
  const algebra::ExactHalves held = algebra::exact_halves(e);
  // Integers have a narrower type than this one, and license no rounding.
  return held.any() && held.is_stored_float ? pool.cast(held.choose(DType::BF16), e) : Expr();
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
    const Expr half = kept.contains(let.name) ? Expr() : in_half(out.body, pool);
    if (half) {
      out.body = half;
      out.dtype = half.dtype();
      narrow.emplace(let.name, out.dtype);
    }
    return out;
  });
}

}  // namespace nautilus::spec
