// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/pull_scale.h"

#include <cmath>

#include "algebra/sign.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

// scale * rest
struct Scaled {
  Expr scale;  // null: 1
  Expr rest;
};

class ScalePuller {
 public:
  ScalePuller(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool), signs_(program), outputs_(output_set(program)) {}

  Let equation(const Let& let) {
    axes_ = all_axes(let, pool_);
    splits_.clear();
    Let out = map_body(let, pool_, [&](Expr e) { return node(e); });
    const bool is_free = !outputs_.contains(let.name) && is_float(let.dtype);
    const Scaled s = is_free ? split(out.body) : Scaled{{}, out.body};
    if (s.scale) {
      scales_.emplace(let.name, s.scale);
      out.body = s.rest;
    }
    return out;
  }

 private:
  // A node with finished operands: reads of scaled tensors get their factor back, and selects and
  // comparisons pass it on.
  Expr node(Expr e) {
    if (e.op() == Op::Read) {
      const auto it = scales_.find(e.name());
      return it == scales_.end() ? e : pool_.binary(Op::Mul, e, it->second);
    }
    if (expr::is_comparison(e.op()) && is_float(e[0].dtype())) {
      const Scaled a = split(e[0]);
      const Scaled b = split(e[1]);
      if (a.scale && a.scale == b.scale) {
        const Expr args[] = {a.rest, b.rest};
        return pool_.with_args(e, args);
      }
      for (const size_t k : {size_t{0}, size_t{1}}) {
        if (!is_fixed_point(e[1 - k])) continue;
        const Scaled s = split(e[k]);
        if (!s.scale) continue;
        std::vector<Expr> args(e.args().begin(), e.args().end());
        args[k] = s.rest;
        return pool_.with_args(e, args);
      }
    }
    if (e.op() == Op::Reduce && expr::is_arg(e.reducer()) && !e.init()) {
      // The position of an extreme does not depend on the scale.
      const Scaled s = split(e.body());
      if (!s.scale) return e;
      std::vector<Expr> args(e.args().begin(), e.args().end());
      args[0] = s.rest;
      return pool_.with_args(e, args);
    }
    if (e.op() == Op::Select || (e.op() == Op::Reduce && !e.init())) {
      const Scaled s = split(e);
      if (s.scale) return pool_.binary(Op::Mul, s.rest, s.scale);
    }
    return e;
  }

  // Numbers that a positive factor does not change.
  static bool is_fixed_point(Expr e) {
    return e.op() == Op::FloatConst && (e.number() == 0 || std::isinf(e.number()));
  }

  Scaled split(Expr e) {
    if (const auto it = splits_.find(e); it != splits_.end()) return it->second;
    const Scaled s = new_split(e);
    splits_.emplace(e, s);
    return s;
  }
  Scaled new_split(Expr e) {
    const Scaled none{{}, e};
    if (!is_float(e.dtype())) return none;
    switch (e.op()) {
      case Op::Mul: {
        for (const size_t k : {size_t{1}, size_t{0}}) {
          if (!is_scale(e[k])) continue;
          const Scaled s = split(e[1 - k]);
          return {s.scale ? product(s.scale, e[k]) : e[k], s.rest};
        }
        const Scaled a = split(e[0]);
        const Scaled b = split(e[1]);
        if (!a.scale && !b.scale) return none;
        const Expr scale = !a.scale ? b.scale : !b.scale ? a.scale : product(a.scale, b.scale);
        return {scale, pool_.binary(Op::Mul, a.rest, b.rest)};
      }
      case Op::Div:
        if (is_scale(e[1])) {
          const Scaled s = split(e[0]);
          const Expr one = pool_.constant(1, e.dtype());
          const Expr inverse = e[1].op() == Op::FloatConst
                                   ? pool_.constant(1 / e[1].number(), e.dtype())
                                   : pool_.binary(Op::Div, one, e[1]);
          return {s.scale ? product(s.scale, inverse) : inverse, s.rest};
        }
        return none;
      case Op::Neg:
      case Op::Abs: {
        const Scaled s = split(e[0]);
        return s.scale ? Scaled{s.scale, pool_.unary(e.op(), s.rest)} : none;
      }
      case Op::Select:
      case Op::Max:
      case Op::Min: {
        const size_t first = e.op() == Op::Select ? 1 : 0;
        const Scaled a = split(e[first]);
        const Scaled b = split(e[first + 1]);
        const bool is_a = a.scale && (a.scale == b.scale || is_fixed_point(e[first + 1]));
        const bool is_b = b.scale && is_fixed_point(e[first]);
        if (!is_a && !is_b) return none;
        return {is_a ? a.scale : b.scale, e.op() == Op::Select
                                              ? pool_.select(e[0], a.rest, b.rest)
                                              : pool_.binary(e.op(), a.rest, b.rest)};
      }
      case Op::Reduce: {
        const bool is_linear = e.reducer() == expr::Reducer::Sum ||
                               e.reducer() == expr::Reducer::Max ||
                               e.reducer() == expr::Reducer::Min;
        if (!is_linear || e.init()) return none;
        const Scaled s = split(e.body());
        if (!s.scale) return none;
        std::vector<Expr> args(e.args().begin(), e.args().end());
        args[0] = s.rest;
        return {s.scale, pool_.with_args(e, args)};
      }
      default:
        return none;
    }
  }

  bool is_scale(Expr e) const { return algebra::is_scalar(e, axes_) && signs_.is_positive(e); }

  Expr product(Expr a, Expr b) {
    if (a.op() == Op::FloatConst && b.op() == Op::FloatConst)
      return pool_.constant(a.number() * b.number(), a.dtype());
    return pool_.binary(Op::Mul, a, b);
  }

  expr::ExprPool& pool_;
  algebra::Signs signs_;
  std::unordered_set<ir::Name> outputs_;
  std::unordered_set<Expr> axes_;
  std::unordered_map<ir::Name, Expr> scales_;
  std::unordered_map<Expr, Scaled> splits_;
};

}  // namespace

std::optional<ir::Program> pull_scale(const ir::Program& program, ir::PassContext& context) {
  ScalePuller puller(program, context);
  return map_equations(program, [&](const Let& let) { return puller.equation(let); });
}

}  // namespace nautilus::spec
