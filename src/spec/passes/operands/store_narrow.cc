// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/store_narrow.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "algebra/exact_halves.h"
#include "ir/operand_width.h"
#include "ir/target_of.h"
#include "spec/equations.h"
#include "spec/passes/operands/store_lines.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;

// Tensors that are operands of products without conversion.
std::unordered_set<ir::Name> operands_of(const ir::Program& program, expr::ExprPool& pool) {
  std::unordered_set<ir::Name> out;
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let || let->body.op() != expr::Op::Reduce || let->body.reducer() != expr::Reducer::Sum)
      continue;
    const std::vector<Expr> list = algebra::factors(let->body.body());
    const std::vector<Expr> axes = result_axes(*let, pool);
    for (Expr f : list) {
      const bool is_operand =
          f.op() == expr::Op::Read && std::any_of(list.begin(), list.end(), [&](Expr other) {
            return algebra::are_operands(f, other, axes);
          });
      if (is_operand) out.insert(f.name());
    }
  }
  return out;
}

// The equation's numbers in 16 bits; null if those do not hold them, or if they are a plain element
// of a tensor, which is in memory already. Without a rounding that is only for operands.
Expr in_half(Expr e, bool is_operand, expr::ExprPool& pool) {
  if (e.dtype() != DType::F32 || e.op() == expr::Op::Read) return {};
  if (e.op() == expr::Op::Cast && expr::is_half(e[0].dtype()))
    return e[0].op() == expr::Op::Cast ? e[0] : Expr();
  if (!is_operand) return {};
  const algebra::ExactHalves held = algebra::exact_halves(e);
  // Integers have a narrower type than this one, and license no rounding.
  return held.any() && held.is_stored_float ? pool.cast(held.choose(DType::BF16), e) : Expr();
}

// The equation's numbers in 8-bit integers that products of integers take; null if they are none.
Expr in_byte(Expr e, const target::Matrix& matrix) {
  const bool is_byte = e.op() == expr::Op::Cast && e.dtype() == DType::I32 &&
                       e[0].op() == expr::Op::Cast && expr::is_int(e[0].dtype());
  return is_byte && ir::operand_width(matrix, e[0].dtype()) ? e[0] : Expr();
}

// Besides that of the rounded number, where the rounding changes nothing.
std::vector<DType> other_dtypes(Expr rounded) {
  if (!expr::is_float(rounded.dtype())) return {};
  std::vector<DType> held = held_dtypes(rounded[0]);
  return std::find(held.begin(), held.end(), rounded.dtype()) == held.end() ? std::vector<DType>()
                                                                            : held;
}

}  // namespace

std::optional<ir::Program> store_narrow(const ir::Program& program, ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  const target::Matrix& matrix = ir::target_of(program).matrix;
  const std::unordered_set<ir::Name> kept = output_set(program);
  const std::unordered_set<ir::Name> scanned = scanned_tensors(program);
  const std::unordered_set<ir::Name> operands = operands_of(program, pool);
  std::unordered_map<ir::Name, DType> narrow;
  StoreLines lines(program, context);
  return lines.finish(map_equations(program, [&](const Let& let) {
    Let out = map_reads(let, pool, [&](Expr read) {
      const auto it = narrow.find(read.name());
      if (it == narrow.end()) return read;
      return pool.cast(read.dtype(), pool.read(read.name(), it->second, read.args()));
    });
    // A scan reads its tensors before it defines them.
    if (kept.contains(let.name) || scanned.contains(let.name)) return out;
    const bool is_operand = operands.contains(let.name);
    Expr half = in_half(out.body, is_operand, pool);
    if (!half && is_operand) half = in_byte(out.body, matrix);
    if (!half) return out;
    const auto store =
        lines.choose({.tensors = {let.name}, .dtype = half.dtype(), .others = other_dtypes(half)});
    if (store.as == decision::StoredAs::Off) return out;
    out.dtype = dtype_of(store.as);
    out.body = pool.cast(out.dtype, half[0]);
    narrow.emplace(let.name, out.dtype);
    return out;
  }));
}

}  // namespace nautilus::spec
