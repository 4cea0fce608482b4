// SPDX-License-Identifier: Apache-2.0
#include "algebra/contraction.h"

#include <algorithm>
#include <numeric>

#include "expr/walk.h"

namespace nautilus::algebra {

using expr::Expr;
using expr::Op;

namespace {

constexpr int64_t kLargestTree = 4096;

void collect(Expr e, Op op, std::vector<Expr>& out) {
  if (e.op() != op) return out.push_back(e);
  collect(e[0], op, out);
  collect(e[1], op, out);
}

std::vector<Expr> parts(Expr e, Op op) {
  if (e.tree_size() > kLargestTree) return {e};
  std::vector<Expr> out;
  collect(e, op, out);
  return out;
}

}  // namespace

std::vector<Expr> factors(Expr e) { return parts(e, Op::Mul); }

std::vector<Expr> terms(Expr e) { return parts(e, Op::Add); }

Expr element_of(Expr factor) {
  const Expr e = factor.op() == Op::Cast ? factor[0] : factor;
  return e.op() == Op::Read ? e : Expr();
}

bool is_half_element(Expr factor) {
  const Expr e = element_of(factor);
  return e && expr::is_half(e.dtype());
}

std::optional<int64_t> equal_neighbours(expr::ExprPool& pool, Expr factor, Expr axis) {
  int64_t blocks = 0;
  expr::Substitution quotients;
  expr::for_each(factor, [&](Expr e) {
    if (e.op() != Op::FloorDiv || e[0] != axis || e[1].op() != Op::IntConst) return;
    if (e[1].integer() < 1) return;
    blocks = std::gcd(blocks, e[1].integer());
    quotients.emplace(e, pool.integer(0));
  });
  if (expr::depends_on(expr::substitute(pool, factor, quotients), axis)) return std::nullopt;
  return blocks;
}

bool has_own_axis(std::span<const Expr> list, std::span<const Expr> others,
                  std::span<const Expr> axes) {
  return std::any_of(axes.begin(), axes.end(), [&](Expr axis) {
    const auto has = [&](Expr f) { return expr::depends_on(f, axis); };
    return std::any_of(list.begin(), list.end(), has) &&
           std::none_of(others.begin(), others.end(), has);
  });
}

bool are_operands(Expr a, Expr b, std::span<const Expr> axes) {
  return has_own_axis({&a, 1}, {&b, 1}, axes) && has_own_axis({&b, 1}, {&a, 1}, axes);
}

bool is_contraction(std::span<const Expr> factors, std::span<const Expr> axes) {
  for (size_t k = 0; k < factors.size(); ++k) {
    for (size_t n = 0; n < k; ++n) {
      if (are_operands(factors[k], factors[n], axes)) return true;
    }
  }
  return false;
}

}  // namespace nautilus::algebra
