// SPDX-License-Identifier: Apache-2.0
#include "vrtile/empty_step.h"

#include <cmath>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

class FirstStep {
 public:
  FirstStep(const ir::Program& program, const For& loop, const Fills& fills,
            const expr::Facts& facts, expr::ExprPool& pool)
      : program_(program), loop_(loop), fills_(fills), facts_(facts), pool_(pool) {
    const bool is_up = loop.direction == Direction::Up;
    facts_.assume(pool.binary(is_up ? EK::Ge : EK::Lt, loop.from, loop.to));
    assume_quotients(
        is_up ? expr::difference(loop.to, loop.from) : expr::difference(loop.from, loop.to),
        is_up ? 0 : -1);
    // The step that is run is the one nearest to the range.
    first_ = {{pool.index(loop.var), is_up ? loop.from : loop.to}};
  }

  Expr value_of(Expr e) { return known(e, facts_); }

  bool is_idle() {
    for (const Op& op : loop_.body) {
      if (!step(op)) return false;
    }
    for (const Op& op : loop_.body) {
      const auto* c = op.get<Carry>();
      if (!c) continue;
      const auto before = fills_.find(c->init);
      const auto after = fills_.find(c->next);
      // NaN does not equal itself, so it never counts as unchanged by a step.
      if (before == fills_.end() || after == fills_.end() || before->second != after->second ||
          (after->second.op() == EK::FloatConst && std::isnan(after->second.number())))
        return false;
    }
    return true;
  }

 private:
  // p <= high; if p is x / c + rest, then also x + c * rest <= c * high + c - 1.
  void assume_quotients(const std::optional<expr::Poly>& p, int64_t high) {
    if (!p) return;
    for (Expr atom : p->atoms()) {
      if (atom.op() != EK::FloorDiv || atom[1].op() != EK::IntConst || atom[1].integer() < 1)
        continue;
      const auto parts = p->split(atom);
      if (!parts || parts->first.constant() != 1) continue;
      const int64_t c = atom[1].integer();
      const Expr rest = expr::to_expr(pool_, parts->second);
      const Expr left = pool_.binary(EK::Add, atom[0], pool_.binary(EK::Mul, atom[1], rest));
      facts_.assume(pool_.binary(EK::Le, left, pool_.integer(c * high + c - 1)));
    }
  }

  // False for what cannot be followed at all; a tile without a known number is left out.
  bool step(const Op& op) {
    if (const auto* c = op.get<Carry>()) {
      if (const auto it = fills_.find(c->init); it != fills_.end()) set(c->name, it->second);
      return true;
    }
    if (const auto* l = op.get<Load>()) {
      if (!l->condition) return false;
      const Expr condition = value(expr::substitute(pool_, l->condition, first_), l->axes);
      if (!condition || condition.op() != EK::BoolConst || condition.is_true()) return false;
      set(l->name, value(l->other, l->axes));
      return true;
    }
    if (const auto* s = op.get<Set>()) {
      set(s->name, value(expr::substitute(pool_, s->value, first_), s->axes));
      return true;
    }
    if (const auto* r = op.get<Reduce>()) {
      ir::Axes axes = r->axes;
      for (size_t k = 0; k < r->value.axis_count(); ++k)
        axes.push_back({r->value.axis(k).name(), r->value.extent(k)});
      set(r->name, reduced(r->value.reducer(),
                           value(expr::substitute(pool_, r->value.body(), first_), axes)));
      return true;
    }
    if (const auto* d = op.get<Dot>()) {
      // Operands are finite: 0 times anything is 0.
      const bool is_zero = is_filled_with_zero(d->a) || is_filled_with_zero(d->b);
      const auto acc = d->acc ? fills_.find(d->acc) : fills_.end();
      if (is_zero && !d->acc) set(d->name, pool_.constant(0, d->type.dtype));
      if (is_zero && acc != fills_.end()) set(d->name, acc->second);
      return true;
    }
    return false;
  }

  void set(ir::Name name, Expr number) {
    if (number && number.is_const()) fills_.insert_or_assign(name, number);
  }

  bool is_filled_with_zero(ir::Name tile) const {
    const auto it = fills_.find(tile);
    if (it == fills_.end()) return false;
    return it->second.op() == EK::FloatConst ? it->second.number() == 0 : it->second.is_int(0);
  }

  static Expr reduced(expr::Reducer reducer, Expr body) {
    if (!body || !body.is_const()) return {};
    switch (reducer) {
      case expr::Reducer::Sum:
        return body.op() == EK::FloatConst && body.number() == 0 ? body : Expr();
      case expr::Reducer::Max:
      case expr::Reducer::Min:
      case expr::Reducer::Any:
      case expr::Reducer::All:
        return body;
      default:
        return {};
    }
  }

  // The expression as far as it is known: a number, or a scalar; null if it varies.
  Expr value(Expr e, const ir::Axes& axes) {
    expr::Facts facts = facts_;
    for (const ir::Axis& a : axes) facts.add_axis(pool_.index(a.name), a.extent);
    return known(e, facts);
  }

  Expr known(Expr e, const expr::Facts& facts) {
    switch (e.op()) {
      case EK::IntConst:
      case EK::BoolConst:
      case EK::FloatConst:
        return e;
      case EK::Var:
        return expr::is_float(e.dtype()) ? e : Expr();
      case EK::Read: {
        const auto it = fills_.find(e.name());
        return it == fills_.end() ? Expr() : it->second;
      }
      case EK::Select: {
        const Expr c = known(e[0], facts);
        if (c && c.op() == EK::BoolConst) return known(e[c.is_true() ? 1 : 2], facts);
        const Expr x = known(e[1], facts);
        return x && x == known(e[2], facts) ? x : Expr();
      }
      case EK::And:
      case EK::Or: {
        const Expr x = known(e[0], facts);
        const Expr y = known(e[1], facts);
        const bool absorbing = e.op() == EK::Or;
        for (Expr z : {x, y}) {
          if (z && z.op() == EK::BoolConst && z.is_true() == absorbing) return z;
        }
        return x && y && x.is_const() && y.is_const() ? x : Expr();
      }
      default:
        break;
    }
    if (expr::is_comparison(e.op()) && e[0].dtype() == ir::DType::I64) {
      const expr::Truth truth = facts.prove(e);
      return truth == expr::Truth::Unknown ? Expr() : pool_.boolean(truth == expr::Truth::True);
    }
    return computed(e, facts);
  }

  Expr computed(Expr e, const expr::Facts& facts) {
    if (e.args().empty() || e.args().size() > 2) return {};
    std::vector<Expr> args;
    std::vector<expr::Value> numbers;
    for (Expr a : e.args()) {
      const Expr x = known(a, facts);
      if (!x) return {};
      args.push_back(x);
      if (!x.is_const()) continue;
      numbers.push_back(x.op() == EK::FloatConst ? expr::float_value(x.number())
                                                 : expr::int_value(x.integer()));
    }
    if (numbers.size() != args.size()) {
      if (e.op() == EK::Mul) return product(args);
      return pool_.with_args(e, args);
    }
    if (e.op() == EK::Cast) return pool_.cast(e.dtype(), args[0]);
    const expr::Value v = expr::apply(e.op(), e.dtype(), args[0].dtype(), numbers.data());
    if (e.dtype() == ir::DType::Bool) return pool_.boolean(v.i != 0);
    if (!expr::is_float(e.dtype())) return {};
    return pool_.floating(v.f, e.dtype());
  }

  // A number times a scalar, which is finite.
  Expr product(const std::vector<Expr>& args) {
    for (size_t k = 0; k < 2; ++k) {
      const Expr x = args[k];
      if (x.op() != EK::FloatConst) continue;
      if (x.number() == 0 || std::isnan(x.number())) return x;
      if (std::isinf(x.number()) && is_positive(program_, args[1 - k])) return x;
      if (std::isinf(x.number())) return {};
    }
    return pool_.binary(EK::Mul, args[0], args[1]);
  }

  const ir::Program& program_;
  const For& loop_;
  Fills fills_;
  expr::Facts facts_;
  expr::ExprPool& pool_;
  expr::Substitution first_;
};

}  // namespace

bool is_first_step_idle(const ir::Program& program, const For& loop, const Fills& fills,
                        const expr::Facts& facts, expr::ExprPool& pool) {
  return FirstStep(program, loop, fills, facts, pool).is_idle();
}

Expr value_with_fills(const ir::Program& program, Expr e, const Fills& fills,
                      expr::ExprPool& pool) {
  const For none{pool.name("n"), pool.integer(0), Direction::Up, pool.integer(0), {}};
  const Expr value = FirstStep(program, none, fills, {}, pool).value_of(e);
  return value && value.is_const() ? value : Expr();
}

}  // namespace nautilus::vrtile
