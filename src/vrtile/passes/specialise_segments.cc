// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/specialise_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "decision/choice.h"
#include "ir/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/finite.h"
#include "vrtile/live_range.h"
#include "vrtile/names.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

class Specialiser {
 public:
  Specialiser(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        pool_(context.pool),
        names_(program.body, context.pool),
        finite_(program),
        facts_(ir::facts_of(program, context.pool)),
        choice_(context) {}

  bool is_refused() const { return is_refused_; }

  Block block(const Block& ops) {
    Block out;
    for (const Op& op : ops) {
      if (!op.is<For>()) {
        finite_.add(op);
        const auto* grid = op.get<Par>();
        const Block* body = body_of(op);
        if (grid && grid->kind == ParKind::Grid) {
          Block own = grid->body;
          choice_.begin(own);
          out.push_back(with_body(op, block(own)));
          is_refused_ |= !choice_.end("no mask of this kernel holds in a range of its steps");
        } else {
          out.push_back(body ? with_body(op, block(*body)) : op);
        }
      } else {
        loop(op, out);
      }
    }
    return out;
  }

 private:
  void loop(const Op& op, Block& out) {
    const auto& loop = op.as<For>();
    const LiveRange range = live_range(loop, pool_);
    using decision::Switch;
    const auto* asked = choice_.asked();
    const bool is_on = !asked || asked->use == Switch::On;
    if (!range.holding.empty()) choice_.took({is_on ? Switch::On : Switch::Off, {}});
    if (range.holding.empty() || !is_on) {
      out.push_back(with_body(op, block(loop.body)));
      return;
    }
    const bool is_down = loop.direction == Direction::Down;
    // The first and the last step, if any runs.
    const Expr lowest = is_down ? loop.to : loop.from;
    const Expr highest = is_down ? loop.from : pool_.binary(EK::Sub, loop.to, pool_.integer(1));
    const Expr first = all_hold(range.from, EK::Ge, lowest)
                           ? Expr()
                           : bound(loop, range.from, EK::Max, "first", out);
    const Expr last =
        all_hold(range.to, EK::Le, highest) ? Expr() : bound(loop, range.to, EK::Min, "last", out);
    const std::vector<Segment> segments = segments_of(loop, first, last);
    Renaming value;  // of a carry, before the loop to come
    for (size_t k = 0; k < segments.size(); ++k) {
      // The last loop keeps the names, so that what follows finds them.
      const bool is_last = k + 1 == segments.size();
      Renaming names;
      Block body = renamed_body(loop, value, is_last, names);
      if (segments[k].is_live) body = live(body, range.holding);
      body = block(body);
      out.push_back(
          ir::make(For{loop.var, segments[k].from, loop.direction, segments[k].to, std::move(body)},
                   op.span()));
      for (const auto& [from, to] : names) value.insert_or_assign(from, to);
    }
  }

  struct Segment {
    Expr from, to;
    bool is_live;
  };

  // In the order in which they run. `first`, `last`: of the live steps; null: there are no steps
  // beyond.
  std::vector<Segment> segments_of(const For& loop, Expr first, Expr last) {
    const Expr one = pool_.integer(1);
    const auto plus = [&](Expr e, Expr x) { return pool_.binary(EK::Add, e, x); };
    const auto minus_one = [&](Expr e) { return plus(e, pool_.integer(-1)); };
    const auto least = [&](Expr a, Expr b) { return pool_.binary(EK::Min, a, b); };
    const auto most = [&](Expr a, Expr b) { return pool_.binary(EK::Max, a, b); };
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
    return segments;
  }

  // The body of the loop for one segment: carries begin with `value`, where it has one, and get new
  // names, which are added to `names`, except in the last segment.
  Block renamed_body(const For& loop, const Renaming& value, bool is_last, Renaming& names) {
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
    return body;
  }

  // True if `step` is on the right side of all bounds, so that they leave out no step.
  bool all_hold(const std::vector<Expr>& bounds, EK side, Expr step) {
    return std::all_of(bounds.begin(), bounds.end(), [&](Expr b) {
      return facts_.prove(pool_.binary(side, step, b)) == expr::Truth::True;
    });
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

  // A set may read a piece of a larger tile.
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
  expr::Facts facts_;
  decision::Choice<decision::Segments> choice_;
  bool is_refused_ = false;
};

}  // namespace

std::optional<ir::Program> specialise_segments(const ir::Program& program,
                                               ir::PassContext& context) {
  Specialiser specialiser(program, context);
  Block body = specialiser.block(program.body);
  if (specialiser.is_refused()) return std::nullopt;
  return ir::Program{program.level, program.name, std::move(body)};
}

}  // namespace nautilus::vrtile
