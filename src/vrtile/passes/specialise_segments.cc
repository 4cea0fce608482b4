// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/specialise_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/finite.h"
#include "vrtile/names.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using expr::Poly;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

// Where the parts of the loop's conditions hold at every point of their tiles.
struct LiveRange {
  std::vector<Expr> from;     // var >= each of these
  std::vector<Expr> to;       // var <= each of these
  std::vector<Expr> holding;  // the parts that then hold
};

class RangeFinder {
 public:
  RangeFinder(const For& loop, expr::ExprPool& pool) : pool_(pool), var_(pool.index(loop.var)) {
    for (const Op& op : loop.body) {
      expr::for_each(value_of(op), [&](Expr x) {
        if (x.op() != EK::Select) return;
        for (Expr c : conjuncts(x[0])) {
          if (expr::depends_on(c, var_)) push(candidates_, c);
        }
      });
    }
    // A part must hold wherever it stands: elsewhere the same axis may be longer.
    for (Expr c : candidates_) {
      Bounds bounds;
      bool is_linear = true;
      for (const Op& op : loop.body) {
        expr::for_each(value_of(op), [&](Expr x) {
          if (x == c) is_linear &= add(c, axes_of(op), bounds);
        });
      }
      if (!is_linear) continue;
      for (const auto& [list, bound] : bounds) push(*list, bound);
      range_.holding.push_back(c);
    }
  }

  const LiveRange& range() const { return range_; }

 private:
  // The expressions that are simplified in live steps; a constant for other ops.
  Expr value_of(const Op& op) {
    if (const auto* s = op.get<Set>()) return s->value;
    if (const auto* r = op.get<Reduce>()) return r->value;
    return pool_.integer(0);
  }

  static ir::Axes axes_of(const Op& op) {
    if (const auto* s = op.get<Set>()) return s->axes;
    const auto& r = op.as<Reduce>();
    ir::Axes axes = r.axes;
    for (size_t k = 0; k < r.value.axis_count(); ++k)
      axes.push_back({r.value.axis(k).name(), r.value.extent(k)});
    return axes;
  }

  using Bounds = std::vector<std::pair<std::vector<Expr>*, Expr>>;

  // The bounds within which the condition holds at all points of the axes; false if there are none.
  bool add(Expr condition, const ir::Axes& axes, Bounds& bounds) {
    if (condition.op() != EK::Or) return add_comparison(condition, axes, bounds);
    // It holds where one of its sides does.
    for (Expr side : condition.args()) {
      Bounds own;
      bool ok = true;
      for (Expr c : conjuncts(side)) ok = ok && add_comparison(c, axes, own);
      if (!ok) continue;
      bounds.insert(bounds.end(), own.begin(), own.end());
      return true;
    }
    return false;
  }

  bool add_comparison(Expr condition, const ir::Axes& axes, Bounds& bounds) {
    const auto p = as_nonnegative(condition);
    const auto parts = p ? p->split(var_) : std::nullopt;
    const auto slope = parts ? parts->first.constant() : std::nullopt;
    if (!slope || *slope == 0) return false;
    const auto least = least_value(parts->second, axes);
    if (!least) return false;
    // slope * var + least >= 0
    if (*slope < 0) {
      bounds.emplace_back(&range_.to, divided(expr::to_expr(pool_, *least), -*slope));
      return true;
    }
    const auto top = expr::negated(*least);
    const auto up = top ? expr::plus(*top, *slope - 1) : std::nullopt;
    if (!up) return false;
    bounds.emplace_back(&range_.from, divided(expr::to_expr(pool_, *up), *slope));
    return true;
  }

  static void push(std::vector<Expr>& list, Expr e) {
    if (std::find(list.begin(), list.end(), e) == list.end()) list.push_back(e);
  }

  Expr divided(Expr e, int64_t by) {
    return by == 1 ? e : pool_.binary(EK::FloorDiv, e, pool_.integer(by));
  }

  // The least value over all points of the axes; the rest of the polynomial stays as it is.
  std::optional<Poly> least_value(const Poly& p, const ir::Axes& axes) {
    Poly out;
    for (const auto& [monomial, factor] : p.terms()) {
      const ir::Axis* found = nullptr;
      for (const ir::Axis& a : axes) {
        for (Expr atom : monomial) {
          if (!expr::depends_on(atom, pool_.index(a.name))) continue;
          if (monomial.size() != 1 || atom != pool_.index(a.name)) return std::nullopt;
          found = &a;
        }
      }
      for (Expr atom : monomial) {
        if (expr::depends_on(atom, var_) || !expr::tensors_read(atom).empty()) return std::nullopt;
      }
      if (!found) {
        if (!out.add(monomial, factor)) return std::nullopt;
      } else if (factor < 0) {
        if (!out.add({}, factor * (found->extent.integer() - 1))) return std::nullopt;
      }
    }
    return out;
  }

  expr::ExprPool& pool_;
  Expr var_;
  std::vector<Expr> candidates_;
  LiveRange range_;
};

class Specialiser {
 public:
  Specialiser(const ir::Program& program, expr::ExprPool& pool)
      : program_(program), pool_(pool), names_(program.body, pool), finite_(program) {}

  Block block(const Block& ops) {
    Block out;
    for (const Op& op : ops) {
      if (!op.is<For>()) {
        finite_.add(op);
        const Block* body = body_of(op);
        out.push_back(body ? with_body(op, block(*body)) : op);
      } else {
        loop(op, out);
      }
    }
    return out;
  }

 private:
  void loop(const Op& op, Block& out) {
    const auto& loop = op.as<For>();
    const LiveRange range = RangeFinder(loop, pool_).range();
    if (range.holding.empty()) {
      out.push_back(with_body(op, block(loop.body)));
      return;
    }
    const Expr first = range.from.empty() ? Expr() : bound(loop, range.from, EK::Max, "first", out);
    const Expr last = range.to.empty() ? Expr() : bound(loop, range.to, EK::Min, "last", out);
    const Expr one = pool_.integer(1);
    const auto plus = [&](Expr e, Expr x) { return pool_.binary(EK::Add, e, x); };
    const auto minus_one = [&](Expr e) { return plus(e, pool_.integer(-1)); };
    const auto least = [&](Expr a, Expr b) { return pool_.binary(EK::Min, a, b); };
    const auto most = [&](Expr a, Expr b) { return pool_.binary(EK::Max, a, b); };

    struct Segment {
      Expr from, to;
      bool is_live;
    };
    std::vector<Segment> segments;
    if (loop.direction == Direction::Down) {
      if (last) segments.push_back({loop.from, most(plus(last, one), loop.to), false});
      const Expr top = last ? least(loop.from, last) : loop.from;
      segments.push_back({top, first ? most(first, loop.to) : loop.to, true});
      if (first) segments.push_back({least(top, minus_one(first)), loop.to, false});
    } else {
      if (first) segments.push_back({loop.from, least(first, loop.to), false});
      const Expr bottom = first ? most(loop.from, first) : loop.from;
      segments.push_back({bottom, last ? least(loop.to, plus(last, one)) : loop.to, true});
      if (last) segments.push_back({most(bottom, plus(last, one)), loop.to, false});
    }

    // The last loop keeps the names, so that what follows finds them.
    Renaming value;  // of a carry, before the loop to come
    for (size_t k = 0; k < segments.size(); ++k) {
      const bool is_last = k + 1 == segments.size();
      Renaming names;
      Block body;
      for (const Op& inner : loop.body) {
        const auto* c = inner.get<Carry>();
        if (!c) {
          body.push_back(inner);
          continue;
        }
        Carry carry = *c;
        if (const auto it = value.find(c->name); it != value.end()) carry.init = it->second;
        if (!is_last) names.emplace(c->name, names_.copy(c->name));
        body.push_back(ir::make(carry, inner.span()));
      }
      for (Op& inner : body) {
        if (const auto* c = inner.get<Carry>()) {
          Carry carry = *c;
          if (const auto it = names.find(c->name); it != names.end()) carry.name = it->second;
          if (const auto it = names.find(c->next); it != names.end()) carry.next = it->second;
          inner = ir::make(carry, inner.span());
        } else {
          inner = rename(inner, names, pool_);
        }
      }
      if (segments[k].is_live) body = live(body, range.holding);
      body = block(body);
      out.push_back(
          ir::make(For{loop.var, segments[k].from, loop.direction, segments[k].to, std::move(body)},
                   op.span()));
      for (const auto& [from, to] : names) value.insert_or_assign(from, to);
    }
  }

  Expr bound(const For& loop, const std::vector<Expr>& parts, EK op, std::string_view which,
             Block& out) {
    Expr value;
    for (Expr p : parts) value = value ? pool_.binary(op, value, p) : p;
    const Name name = names_.fresh(fmt::format("{}_{}_live", loop.var.str(), which));
    out.push_back(ir::make(Let{name, value}));
    return pool_.index(name);
  }

  Block live(const Block& body, const std::vector<Expr>& holding) {
    const std::unordered_set<Expr> known(holding.begin(), holding.end());
    Block out;
    Renaming copies;
    FiniteTiles finite = finite_;
    for (const Op& original : body) {
      if (original.is<Carry>()) {
        out.push_back(original);
        continue;
      }
      Op op = rename(original, copies, pool_);
      if (op.is<Set>() || op.is<Reduce>()) {
        op = ir::map_exprs(op, [&](Expr e) { return simplified(e, known, finite); });
      }
      finite.add(op);
      if (const Name source = copied(op)) {
        copies.insert_or_assign(defined(op), source);
      } else {
        out.push_back(op);
      }
    }
    for (Op& op : out) {
      const auto* c = op.get<Carry>();
      if (!c || !copies.contains(c->next)) continue;
      Carry carry = *c;
      carry.next = copies.at(c->next);
      op = ir::make(carry, op.span());
    }
    return out;
  }

  Expr simplified(Expr e, const std::unordered_set<Expr>& known, const FiniteTiles& finite) {
    return expr::rebuild(pool_, e, [&](Expr x) {
      if (known.contains(x)) return pool_.boolean(true);
      if (x.op() == EK::And && x[0].is_true()) return x[1];
      if (x.op() == EK::And && x[1].is_true()) return x[0];
      if (x.op() == EK::Select && x[0].is_true()) return x[1];
      if (x.op() == EK::Select && x[0].op() == EK::Eq) {
        const Expr tested = x[0][0];
        if (is_minus_infinity(x[0][1]) && finite.is_above(tested)) return x[2];
      }
      return x;
    });
  }

  // The tile that a set copies; no name if it does more.
  Name copied(const Op& op) const {
    const auto* s = op.get<Set>();
    if (!s || s->value.op() != EK::Read || s->value.args().size() != s->axes.size()) return {};
    for (size_t k = 0; k < s->axes.size(); ++k) {
      if (s->value[k] != pool_.index(s->axes[k].name)) return {};
    }
    return types_match(*s) ? s->value.name() : Name();
  }

  // A set may take a part of a larger tile.
  bool types_match(const Set& s) const {
    bool is_same = false;
    ir::for_each_op(program_.body, [&](const Op& op) {
      if (defined(op) == s.value.name()) is_same = type_of(op) == type_of(ir::make(s));
    });
    return is_same;
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  Names names_;
  FiniteTiles finite_;
};

}  // namespace

std::optional<ir::Program> specialise_segments(const ir::Program& program,
                                               ir::PassContext& context) {
  return ir::Program{program.level, program.name,
                     Specialiser(program, context.pool).block(program.body)};
}

}  // namespace nautilus::vrtile
