// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/fold_fills.h"

#include <cmath>
#include <unordered_map>

#include "ir/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/finite.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

bool is_number(Expr e, double value) { return e.op() == EK::FloatConst && e.number() == value; }

class Folder {
 public:
  Folder(const ir::Program& program, expr::ExprPool& pool)
      : program_(program), pool_(pool), finite_(program) {}

  Block block(const Block& ops) {
    const auto fills = fills_;
    const auto votes = votes_;
    const auto loads = loads_;
    const Renaming copies = copies_;
    Block out;
    for (const Op& original : ops) {
      if (const Block* body = body_of(original)) {
        finite_.add(original);
        For head;
        Op op = original;
        if (const auto* loop = original.get<For>()) {
          head = *loop;
          head.from = rename(loop->from, copies_, pool_);
          head.to = rename(loop->to, copies_, pool_);
          op = ir::make(std::move(head), original.span());
        }
        out.push_back(with_body(op, block(*body)));
        continue;
      }
      Op op = original.is<Carry>() ? original : rename(original, copies_, pool_);
      if (op.is<Set>() || op.is<Store>() || op.is<Reduce>())
        op = ir::map_exprs(op, [&](Expr e) { return folded(e); });
      define(op);
      if (const Name source = copied(op)) {
        copies_.insert_or_assign(defined(op), source);
      } else {
        out.push_back(op);
      }
    }
    for (Op& op : out) {
      const auto* c = op.get<Carry>();
      if (!c) continue;
      Carry carry = *c;
      if (const auto it = copies_.find(c->init); it != copies_.end()) carry.init = it->second;
      if (const auto it = copies_.find(c->next); it != copies_.end()) carry.next = it->second;
      op = ir::make(carry, op.span());
    }
    fills_ = fills;
    votes_ = votes;
    loads_ = loads;
    copies_ = copies;
    return out;
  }

 private:
  void define(const Op& op) {
    finite_.add(op);
    const Name name = defined(op);
    if (!name) return;
    fills_.erase(name);
    votes_.erase(name);
    copies_.erase(name);
    loads_.erase(name);
    if (const auto* l = op.get<Load>()) loads_.emplace(name, *l);
    types_.insert_or_assign(name, type_of(op));
    if (const Expr e = filled_with(op)) fills_.insert_or_assign(name, e);
    const auto* r = op.get<Reduce>();
    if (r && r->value.reducer() == expr::Reducer::Any) votes_.insert_or_assign(name, r->value);
  }

  Name copied(const Op& op) const {
    const auto* s = op.get<Set>();
    if (!s || s->value.op() != EK::Read || s->value.args().size() != s->axes.size()) return {};
    for (size_t k = 0; k < s->axes.size(); ++k) {
      if (s->value[k] != pool_.index(s->axes[k].name)) return {};
    }
    const auto it = types_.find(s->value.name());
    return it != types_.end() && it->second == type_of(op) ? s->value.name() : Name();
  }

  Expr folded(Expr e) {
    return expr::rebuild(pool_, e, [&](Expr x) { return step(x); });
  }

  Expr step(Expr x) {
    switch (x.op()) {
      case EK::Read: {
        const auto it = fills_.find(x.name());
        return it == fills_.end() ? x : it->second;
      }
      case EK::Max:
        if (is_minus_infinity(x[0])) return x[1];
        if (is_minus_infinity(x[1])) return x[0];
        return x;
      case EK::Add:
        // -0 + 0 is 0, which no result can tell from -0 but a quotient.
        if (is_number(x[0], 0)) return x[1];
        if (is_number(x[1], 0)) return x[0];
        return x;
      case EK::Sub:
        if (is_minus_infinity(x[0]) && is_above(x[1])) return x[0];
        return x;
      case EK::Mul:
        return product(x);
      case EK::Exp2:
      case EK::Exp:
        return is_minus_infinity(x[0]) ? pool_.floating(0, x.dtype()) : x;
      case EK::Select:
        if (x[0].op() == EK::BoolConst) return x[0].is_true() ? x[1] : x[2];
        return x[1] == x[2] || is_vote_for(x) ? x[1] : without_needless_guards(x);
      case EK::Gt: {
        // (y + inf) * k > t: wherever y is not -inf
        const Expr y = x[0];
        if (y.op() == EK::Mul && y[0].op() == EK::Sub && is_minus_infinity(y[0][1]) &&
            is_positive(program_, y[1]) && x[1].op() == EK::FloatConst)
          return pool_.binary(EK::Gt, y[0][0], y[0][1]);
        return x;
      }
      default:
        return x;
    }
  }

  // where(c, v, other) without the conjuncts of c whose failure gives loads their fill, so that v
  // equals `other` anyway.
  Expr without_needless_guards(Expr x) {
    if (!x[2].is_const()) return x;
    std::vector<Expr> kept;
    const std::vector<Expr> parts = conjuncts(x[0]);
    for (Expr c : parts) {
      if (!is_implied_by_fills(c, x[1], x[2])) kept.push_back(c);
    }
    if (kept.size() == parts.size()) return x;
    return kept.empty() ? x[1] : pool_.select(conjunction(pool_, kept), x[1], x[2]);
  }

  bool is_implied_by_fills(Expr condition, Expr value, Expr other) {
    expr::Substitution filled;
    expr::for_each(value, [&](Expr r) {
      const auto it = r.op() == EK::Read ? loads_.find(r.name()) : loads_.end();
      if (it == loads_.end() || !it->second.condition) return;
      const Load& load = it->second;
      expr::Substitution axes;
      for (size_t k = 0; k < load.axes.size(); ++k)
        axes.emplace(pool_.index(load.axes[k].name), r[k]);
      for (Expr c : conjuncts(load.condition)) {
        if (expr::substitute(pool_, c, axes) == condition) filled.emplace(r, load.other);
      }
    });
    if (filled.empty()) return false;
    return folded(expr::substitute(pool_, value, filled)) == other;
  }

  Expr product(Expr x) {
    for (size_t k = 0; k < 2; ++k) {
      const Expr other = x[1 - k];
      if (is_number(x[k], 1)) return other;
      if (is_number(x[k], 0) && finite_.is_finite(other)) return x[k];
      if (is_minus_infinity(x[k]) && is_positive(program_, other)) return x[k];
    }
    return x;
  }

  // Not -inf, or guarded so.
  bool is_above(Expr e) const {
    if (e.op() == EK::Select && e[0].op() == EK::Eq && e[0][0] == e[2] &&
        is_minus_infinity(e[0][1]))
      return finite_.is_above(e[1]);
    return finite_.is_above(e);
  }

  // where(any(y > -inf), y, -inf) is y.
  bool is_vote_for(Expr x) const {
    if (x[0].op() != EK::Read || !is_minus_infinity(x[2]) || x[1].op() != EK::Read) return false;
    const auto it = votes_.find(x[0].name());
    if (it == votes_.end()) return false;
    const Expr test = it->second.body();
    return test.op() == EK::Gt && is_minus_infinity(test[1]) && test[0].op() == EK::Read &&
           test[0].name() == x[1].name() && is_group_of(x[0], x[1], it->second);
  }

  // The vote of row i's group is asked for row i: index i / n, rows n * g + y.
  bool is_group_of(Expr vote, Expr value, Expr reduction) const {
    if (vote.args().size() != 1 || value.args().size() != 1 || reduction.axis_count() != 1)
      return false;
    const Expr rows = reduction.extent(0);
    const Expr asked = pool_.binary(EK::FloorDiv, value[0], rows);
    if (vote[0] != asked) return false;
    const Expr at = reduction.body()[0][0];
    if (at.op() != EK::Add || at[1] != reduction.axis(0) || at[0].op() != EK::Mul) return false;
    return at[0][0] == rows && at[0][1].op() == EK::Var;
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  FiniteTiles finite_;
  std::unordered_map<Name, Expr> fills_;
  std::unordered_map<Name, Expr> votes_;
  std::unordered_map<Name, Load> loads_;
  std::unordered_map<Name, ir::TensorType> types_;
  Renaming copies_;
};

}  // namespace

std::optional<ir::Program> fold_fills(const ir::Program& program, ir::PassContext& context) {
  return ir::Program{program.level, program.name,
                     Folder(program, context.pool).block(program.body)};
}

}  // namespace nautilus::vrtile
