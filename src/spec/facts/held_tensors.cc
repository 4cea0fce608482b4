// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/held_tensors.h"

#include <algorithm>

#include "algebra/exact_halves.h"
#include "expr/walk.h"
#include "spec/equations.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

// Definitions of definitions may be long: beyond this many nodes a name is an operand of its own.
constexpr int64_t kLargestTree = 256;

// Whether the expression is a product or a quotient with a factor that 16 bits hold.
bool is_product_with_held(expr::Expr e) {
  if (e.op() == expr::Op::Mul)
    return std::any_of(e.args().begin(), e.args().end(), [](expr::Expr f) {
      return algebra::exact_halves(f).is_stored_float || is_product_with_held(f);
    });
  return e.op() == expr::Op::Div &&
         (algebra::exact_halves(e[0]).is_stored_float || is_product_with_held(e[0]));
}

}  // namespace

HeldTensors::HeldTensors(const ir::Program& program, expr::ExprPool& pool) : pool_(pool) {
  const std::unordered_set<ir::Name> scanned = scanned_tensors(program);
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let || let->dtype != expr::DType::F32 || scanned.contains(let->name)) continue;
    const expr::Expr body = marked(let->body);
    const algebra::ExactHalves held = algebra::exact_halves(body);
    // A copy of integers licenses nothing, as they do not themselves.
    if (held.any() && held.is_stored_float)
      held_.emplace(let->name, held.choose(expr::DType::BF16));
    if (body.tree_size() <= kLargestTree && !expr::has_reduce(body) && is_product_with_held(body)) {
      Let product = *let;
      product.body = body;
      products_.emplace(let->name, std::move(product));
    }
  }
}

expr::Expr HeldTensors::marked(expr::Expr e) const {
  if (held_.empty() && products_.empty()) return e;
  return expr::rebuild(pool_, e, [&](expr::Expr x) {
    if (x.op() != expr::Op::Read || x.dtype() != expr::DType::F32) return x;
    if (const auto it = products_.find(x.name()); it != products_.end())
      return body_at(it->second, x, pool_);
    const auto it = held_.find(x.name());
    return it == held_.end() ? x : pool_.cast(x.dtype(), pool_.cast(it->second, x));
  });
}

}  // namespace nautilus::spec
