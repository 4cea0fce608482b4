// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/gauge.h"

#include <algorithm>
#include <unordered_set>

#include "ir/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/finite.h"
#include "vrtile/names.h"
#include "vrtile/walk.h"
#include "vrtile/weights.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

// Rows that the hardware can branch for at once, and how far (in powers of two) a reference may
// lag.
constexpr int64_t kRows = 16;
constexpr double kLag = 8;

struct Reference {
  Carry carry;      // the running reference
  Set next;         // max or min of it and `local`
  Expr local;       // what it follows, as the set reads it
  Expr scale = {};  // in powers of two per unit
};

Weight reference_weight(bool is_now) {
  Weight w{.kind = Weight::Kind::Shifted};
  (is_now ? w.now : w.old) = Coefficient::one();
  return w;
}

class Gauge {
 public:
  Gauge(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), names_(program.body, pool), finite_(program) {}

  Block block(const Block& ops, bool is_in_loop) {
    Block out;
    for (size_t k = 0; k < ops.size(); ++k) {
      Op op = ops[k];
      finite_.add(op);
      definitions_.insert_or_assign(defined(op), op);
      if (const auto* p = op.get<Par>()) op = with_body(op, block(p->body, false));
      if (op.is<For>() && !is_in_loop) {
        const Block after(ops.begin() + static_cast<long>(k) + 1, ops.end());
        for (const Op& inner : op.as<For>().body) {
          if (!inner.is<Carry>()) continue;
          const auto r = reference(op.as<For>(), inner.as<Carry>());
          if (r) op = followed_lazily(op, *r, after);
        }
      }
      out.push_back(op);
    }
    return out;
  }

 private:
  // A carry whose next value is the larger or smaller of it and another tile.
  std::optional<Reference> reference(const For& loop, const Carry& c) {
    if (c.type.dims.size() != 1 || c.type.dtype != ir::DType::F32 ||
        c.type.dims[0].integer() % kRows != 0)
      return std::nullopt;
    for (const Op& op : loop.body) {
      const auto* s = op.get<Set>();
      if (!s || s->name != c.next) continue;
      if (s->value.op() != EK::Max && s->value.op() != EK::Min) return std::nullopt;
      const Expr at[] = {pool_.index(s->axes[0].name)};
      const Expr mine = pool_.read(c.name, c.type.dtype, at);
      for (size_t k = 0; k < 2; ++k) {
        const Expr other = s->value[1 - k];
        if (s->value[k] == mine && other.op() == EK::Read && other.args().size() == 1 &&
            other[0] == at[0])
          return Reference{c, *s, other};
      }
    }
    return std::nullopt;
  }

  Op followed_lazily(const Op& op, Reference r, const Block& after) {
    const auto& loop = op.as<For>();
    if (!has_any_gauge(loop, r, after)) return op;
    Block body;
    std::unordered_set<Name> factors;
    Name moves;
    for (const Op& inner : loop.body) {
      const auto* s = inner.get<Set>();
      if (s && s->name == r.next.name) {
        body.push_back(vote(r, moves));
        body.push_back(chosen(*s, moves, s->axes[0].name, old_value(r, s->axes[0].name)));
      } else if (s && moves && is_factor(*s, r)) {
        factors.insert(s->name);
        body.push_back(chosen(*s, moves, s->axes[0].name, pool_.floating(1, s->value.dtype())));
      } else if (s && moves && s->axes.size() > 1 && s->value.op() == EK::Mul) {
        body.push_back(rescaled(inner, *s, moves, factors));
      } else {
        body.push_back(inner);
      }
    }
    return with_body(op, std::move(body));
  }

  // Whether the program computes the same with every sequence of references, and at least one
  // larger accumulator is kept relative to it. Finds the scale.
  bool has_any_gauge(const For& loop, Reference& r, const Block& after) {
    std::vector<Carry> carries;
    for (const Op& op : loop.body) {
      if (op.is<For>()) return false;
      if (op.is<Carry>() && op.as<Carry>().name != r.carry.name) carries.push_back(op.as<Carry>());
    }
    std::unordered_map<Name, TileWeight> assumed;
    for (const Carry& c : carries) assumed[c.name] = {{.kind = Weight::Kind::Zero}, 0};
    Weights weights(pool_);
    bool is_stable = false;
    for (int round = 0; round < 4 && !is_stable; ++round) {
      weights.clear();
      weights.set(r.carry.name, {reference_weight(false), 0});
      for (const auto& [name, w] : assumed) weights.set(name, w);
      if (!follow(loop.body, weights, &r)) return false;
      is_stable = true;
      for (const Carry& c : carries) {
        TileWeight next = weights.of(c.next);
        if (next.weight.kind == Weight::Kind::Bad || !next.weight.old.is_zero()) return false;
        std::swap(next.weight.old, next.weight.now);
        is_stable &= is_same(next, assumed.at(c.name));
        assumed.at(c.name) = next;
      }
    }
    if (!is_stable || !starts_well(r, carries, assumed)) return false;
    if (!find_scale(loop, r, weights)) return false;
    // Behind the loop there is one reference.
    Weights end(pool_);
    end.set(r.carry.name, {reference_weight(false), 0});
    bool is_useful = false;
    for (const auto& [name, w] : assumed) {
      end.set(name, w);
      for (const Carry& c : carries)
        is_useful |= c.name == name && w.weight.is_weighted() && c.type.dims.size() > 1;
    }
    return is_useful && follow(after, end, nullptr);
  }

  static bool is_same(const TileWeight& a, const TileWeight& b) {
    return a.weight.kind == b.weight.kind && a.weight.old == b.weight.old &&
           a.weight.now == b.weight.now && (!a.weight.is_weighted() || a.dim == b.dim);
  }

  // Weights through a block; false if something outside of it depends on the reference.
  static bool follow(const Block& ops, Weights& weights, const Reference* r) {
    for (const Op& op : ops) {
      if (op.is<Carry>()) continue;
      if (r && defined(op) == r->next.name) {
        if (weights.of(r->local.name()).weight.kind != Weight::Kind::Plain) return false;
        weights.set(r->next.name, {reference_weight(true), 0});
        continue;
      }
      if (const auto* s = op.get<Store>()) {
        bool is_fixed = true;
        for_each_own_expr(op, [&](Expr e) {
          const auto kind = weights.of(e).kind;
          is_fixed &= kind == Weight::Kind::Plain || kind == Weight::Kind::Zero;
        });
        if (!is_fixed || !s->target) return false;
        continue;
      }
      if (op.is<For>() || op.is<Par>() || op.is<Let>()) {
        bool is_used = false;
        ir::for_each_op({op}, [&](const Op& inner) {
          for_each_use(inner, [&](Name n) {
            const auto kind = weights.of(n).weight.kind;
            is_used |= kind != Weight::Kind::Plain && kind != Weight::Kind::Zero;
          });
        });
        if (is_used) return false;
        continue;
      }
      weights.add(op);
    }
    return true;
  }

  // From -inf the factor is 0 and not 1, which makes no difference to accumulators that are 0.
  bool starts_well(const Reference& r, const std::vector<Carry>& carries,
                   const std::unordered_map<Name, TileWeight>& weights) const {
    const auto filled = [&](Name n) {
      const auto it = definitions_.find(n);
      return it == definitions_.end() ? Expr() : filled_with(it->second);
    };
    const Expr at[] = {pool_.index(r.next.axes[0].name)};
    if (finite_.is_above(pool_.read(r.carry.init, r.carry.type.dtype, at))) return true;
    return std::all_of(carries.begin(), carries.end(), [&](const Carry& c) {
      if (!weights.at(c.name).weight.is_weighted()) return true;
      const Expr start = filled(c.init);
      return start && start.op() == EK::FloatConst && start.number() == 0;
    });
  }

  // The factor exp2((old - new) * scale).
  bool find_scale(const For& loop, Reference& r, const Weights& weights) {
    for (const Op& op : loop.body) {
      const auto* s = op.get<Set>();
      if (!s || s->axes.size() != 1) continue;
      const TileWeight w = weights.of(s->name);
      if (w.weight.kind != Weight::Kind::Scaled || w.weight.old.is_zero() ||
          !(w.weight.old + w.weight.now).is_zero())
        continue;
      r.scale = w.weight.old.expression(pool_, r.carry.type.dtype);
      return static_cast<bool>(r.scale);
    }
    return false;
  }

  // exp2 of something that is 0 when the reference stays: only then 1 may stand for it.
  bool is_factor(const Set& s, const Reference& r) {
    if (s.axes.size() != 1 || (s.value.op() != EK::Exp2 && s.value.op() != EK::Exp)) return false;
    const Expr d = s.value[0];
    const Expr at[] = {pool_.index(s.axes[0].name)};
    const Expr old = pool_.read(r.carry.name, r.carry.type.dtype, at);
    const Expr now = pool_.read(r.next.name, r.carry.type.dtype, at);
    const auto is_now = [&](Expr e) {
      if (e.op() == EK::Select && e[0].op() == EK::Eq && e[0][0] == now &&
          is_minus_infinity(e[0][1]))
        return e[2] == now;
      return e == now;
    };
    const auto is_difference = [&](Expr e) {
      return e.op() == EK::Sub && e[0] == old && is_now(e[1]);
    };
    if (is_difference(d)) return true;
    if (d.op() == EK::Mul) return is_difference(d[0]) || is_difference(d[1]);
    if (d.op() != EK::Sub || d[0].op() != EK::Mul || d[1].op() != EK::Mul) return false;
    return d[0][0] == old && is_now(d[1][0]) && d[0][1] == d[1][1];
  }

  // any of 16 rows moves by more than the lag
  Op vote(const Reference& r, Name& moves) {
    moves = names_.fresh(std::string(r.next.name.str()) + "_moves");
    const Expr group = pool_.index(names_.fresh("g"));
    const Expr inside = pool_.index(names_.fresh("y"));
    const ir::DType dtype = r.carry.type.dtype;
    const Expr rows = pool_.integer(kRows);
    const Expr at[] = {pool_.binary(EK::Add, pool_.binary(EK::Mul, rows, group), inside)};
    const Expr growth = pool_.binary(EK::Sub, pool_.read(r.local.name(), dtype, at),
                                     pool_.read(r.carry.name, dtype, at));
    const Expr test =
        pool_.binary(EK::Gt, pool_.binary(EK::Mul, growth, r.scale), pool_.floating(kLag, dtype));
    const Expr axes[] = {inside};
    const Expr extents[] = {rows};
    const Expr groups = pool_.integer(r.carry.type.dims[0].integer() / kRows);
    return ir::make(Reduce{
        moves, {{group.name(), groups}}, pool_.reduce(expr::Reducer::Any, test, axes, extents)});
  }

  Expr moved(Name moves, Expr row) {
    const Expr at[] = {pool_.binary(EK::FloorDiv, row, pool_.integer(kRows))};
    return pool_.read(moves, ir::DType::Bool, at);
  }

  Op chosen(const Set& s, Name moves, Name row, Expr other) {
    return ir::make(
        Set{s.name, s.axes, pool_.select(moved(moves, pool_.index(row)), s.value, other)});
  }

  Expr old_value(const Reference& r, Name row) {
    const Expr at[] = {pool_.index(row)};
    return pool_.read(r.carry.name, r.carry.type.dtype, at);
  }

  // u * factor[row] is u where the reference stays.
  Op rescaled(const Op& op, const Set& s, Name moves, const std::unordered_set<Name>& factors) {
    for (size_t k = 0; k < 2; ++k) {
      const Expr f = s.value[k];
      if (f.op() != EK::Read || !factors.contains(f.name())) continue;
      return ir::make(
          Set{s.name, s.axes, pool_.select(moved(moves, f[0]), s.value, s.value[1 - k])},
          op.span());
    }
    return op;
  }

  expr::ExprPool& pool_;
  Names names_;
  FiniteTiles finite_;
  std::unordered_map<Name, Op> definitions_;
};

}  // namespace

std::optional<ir::Program> gauge(const ir::Program& program, ir::PassContext& context) {
  return ir::Program{program.level, program.name,
                     Gauge(program, context.pool).block(program.body, false)};
}

}  // namespace nautilus::vrtile
