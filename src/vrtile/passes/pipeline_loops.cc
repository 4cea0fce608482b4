// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/pipeline_loops.h"

#include <algorithm>
#include <unordered_map>

#include "decision/choice.h"
#include "expr/bounds/bounds.h"
#include "ir/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/empty_step.h"
#include "vrtile/names.h"
#include "vrtile/passes/pipeline_stages.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

class Pipeliner {
 public:
  Pipeliner(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        pool_(context.pool),
        names_(program.body, context.pool),
        facts_(ir::facts_of(program, context.pool)),
        choice_(context) {}

  bool is_refused() const { return is_refused_; }

  Block block(const Block& ops) {
    Block out;
    Renaming after;  // names of values after a pipelined loop
    for (const Op& original : ops) {
      const Op op = after.empty() ? original : rename(original, after, pool_);
      if (const auto* let = op.get<Let>()) {
        if (let->value.dtype() == ir::DType::I64)
          lets_.insert_or_assign(pool_.index(let->name), resolved(let->value));
      }
      if (const auto* p = op.get<Par>()) {
        const expr::Facts before = facts_;
        for (const ir::Axis& a : p->axes) facts_.add_axis(pool_.index(a.name), resolved(a.extent));
        Block body = p->body;
        if (p->kind == ParKind::Grid) choice_.begin(body);
        out.push_back(with_body(op, block(body)));
        if (p->kind == ParKind::Grid)
          is_refused_ |= !choice_.end("no product of this kernel can run a step later");
        facts_ = before;
      } else if (op.is<For>()) {
        loop(op, out, after);
      } else {
        if (const Expr number = filled_with(op)) fills_.insert_or_assign(defined(op), number);
        out.push_back(op);
      }
    }
    return out;
  }

 private:
  // The loop with a range of at least one step; empty if it may run none, and one would change
  // something.
  std::optional<For> running(const For& loop) {
    if (runs_once(loop)) return loop;
    For head = loop;
    head.from = resolved(loop.from);
    head.to = resolved(loop.to);
    if (!is_first_step_idle(program_, head, fills_, facts_, pool_)) return std::nullopt;
    head = loop;
    if (loop.direction == Direction::Up) {
      const Expr second = simplified(pool_.binary(EK::Add, loop.from, pool_.integer(1)));
      head.to = pool_.binary(EK::Max, second, loop.to);
    } else {
      head.from = pool_.binary(EK::Max, loop.from, loop.to);
    }
    return head;
  }

  Expr resolved(Expr e) { return expr::substitute(pool_, e, lets_); }

  bool runs_once(const For& loop) {
    const bool is_up = loop.direction == Direction::Up;
    const Expr condition =
        pool_.binary(is_up ? EK::Lt : EK::Ge, resolved(loop.from), resolved(loop.to));
    return facts_.prove(condition) == expr::Truth::True;
  }

  void loop(const Op& op, Block& out, Renaming& after) {
    std::optional<StagePlan> plan = stages_of(op.as<For>(), names_, pool_);
    const bool is_copied = has_products(op.as<For>());
    const std::optional<For> range = plan || is_copied ? running(op.as<For>()) : std::nullopt;
    const bool is_possible = range && plan;
    if (is_possible) {
      const auto* asked = choice_.asked();
      const int64_t depth = asked ? asked->depth.value_or(-1) : 1;
      if (depth < 0 || depth > 1) choice_.refuse("a depth is 0 or 1");
      choice_.took({depth, {}});
      if (depth == 0) plan.reset();
    }
    if (!range || !plan) {
      const Op known = range ? ir::make(*range, op.span()) : op;
      out.push_back(with_body(known, block(op.as<For>().body)));
      return;
    }
    pipelined({op, *range, *plan, stages_of_tiles(*plan)}, out, after);
  }

  // A loop that is pipelined.
  struct Pipelined {
    const Op& op;
    const For& loop;
    const StagePlan& plan;
    std::unordered_map<Name, int> stage;  // of tiles; a carry has the stage of its next

    int stage_of(Name n) const {
      const auto it = stage.find(n);
      return it == stage.end() ? 0 : it->second;
    }
    bool is_up() const { return loop.direction == Direction::Up; }
  };

  static std::unordered_map<Name, int> stages_of_tiles(const StagePlan& s) {
    std::unordered_map<Name, int> stage;
    for (size_t k = 0; k < s.ops.size(); ++k) {
      const Name n = s.ops[k].is<Let>() ? s.ops[k].as<Let>().name : defined(s.ops[k]);
      if (n) stage.emplace(n, s.stage[k]);
    }
    return stage;
  }

  // Stage 0 of the first iteration, the loop in which both stages run, stage 1 of the last
  // iteration.
  void pipelined(const Pipelined& p, Block& out, Renaming& after) {
    const For& loop = p.loop;
    const StagePlan& s = p.plan;
    const Expr var = pool_.index(loop.var);
    Renaming first;
    for (const Carry& c : s.carries) first.emplace(c.name, c.init);
    for (size_t k : s.order) {
      if (s.stage[k] == 0) out.push_back(copied(s.ops[k], {{var, loop.from}}, first));
    }

    const auto deep = held_values(p);
    Renaming late;
    for (const auto& [value, held] : deep) late.emplace(value, held);
    Block body = carries(p, first, deep);
    both_stages(p, late, body);
    const Expr from =
        simplified(pool_.binary(EK::Add, loop.from, pool_.integer(p.is_up() ? 1 : -1)));
    out.push_back(
        ir::make(For{loop.var, from, loop.direction, loop.to, std::move(body)}, p.op.span()));

    const Expr last =
        p.is_up() ? simplified(pool_.binary(EK::Add, loop.to, pool_.integer(-1))) : loop.to;
    Renaming end = late;
    for (size_t k : s.order) {
      if (s.stage[k] == 1) out.push_back(copied(s.ops[k], {{var, last}}, end));
    }
    for (const Carry& c : s.carries) {
      if (p.stage_of(c.next) == 1) after.insert_or_assign(c.name, end.at(c.next));
    }
  }

  // Values of stage 0 that late ops need, each with the name under which it is held for them.
  std::vector<std::pair<Name, Name>> held_values(const Pipelined& p) {
    const StagePlan& s = p.plan;
    std::vector<std::pair<Name, Name>> deep;
    for (size_t k = 0; k < s.ops.size(); ++k) {
      if (s.stage[k] == 0) continue;
      for_each_use(s.ops[k], [&](Name n) {
        const Carry* carry = find(s.carries, n);
        const bool is_early =
            carry ? p.stage_of(carry->next) == 0 : p.stage.contains(n) && p.stage.at(n) == 0;
        const bool is_held =
            std::any_of(deep.begin(), deep.end(), [&](const auto& d) { return d.first == n; });
        if (!is_early || is_held) return;
        deep.emplace_back(n, names_.fresh(std::string(n.str()) + "_late"));
      });
    }
    return deep;
  }

  // The carries of the new loop. `first`: the names of what the first iteration made.
  static Block carries(const Pipelined& p, const Renaming& first,
                       const std::vector<std::pair<Name, Name>>& deep) {
    Block out;
    for (const Carry& c : p.plan.carries) {
      if (p.stage_of(c.next) == 1) {
        out.push_back(ir::make(c, p.op.span()));
      } else {
        const auto next = first.find(c.next);
        const Name from = next == first.end() ? c.next : next->second;
        out.push_back(ir::make(Carry{c.name, c.type, from, c.next}, p.op.span()));
      }
    }
    for (const auto& [value, held] : deep) {
      const Carry* carry = find(p.plan.carries, value);
      const Name from = first.at(value);
      out.push_back(ir::make(
          Carry{held, carry ? carry->type : type_of(definition(p.plan, value)), from, value}));
    }
    return out;
  }

  // Stage 0 of an iteration, and stage 1 of the one before it, with the names of values that are
  // held for it.
  void both_stages(const Pipelined& p, const Renaming& late, Block& body) {
    const StagePlan& s = p.plan;
    Renaming direct;  // stage 0 reads what a late op of this iteration of the new loop has made
    for (const Carry& c : s.carries) {
      if (p.stage_of(c.next) == 1) direct.emplace(c.name, c.next);
    }
    const Expr var = pool_.index(p.loop.var);
    const Expr step = pool_.integer(p.is_up() ? -1 : 1);
    const Expr previous = pool_.binary(EK::Add, var, step);
    for (size_t k : s.order) {
      if (s.stage[k] == 0) {
        body.push_back(rename(s.ops[k], direct, pool_));
      } else {
        body.push_back(
            simplified(substitute(rename(s.ops[k], late, pool_), {{var, previous}}, pool_)));
      }
    }
  }

  // Kernels load operands of products ahead of their use, so the loop must be known to run.
  static bool has_products(const For& loop) {
    return std::any_of(loop.body.begin(), loop.body.end(),
                       [](const Op& op) { return op.is<Dot>(); });
  }

  static const Carry* find(const std::vector<Carry>& carries, Name name) {
    for (const Carry& c : carries) {
      if (c.name == name) return &c;
    }
    return nullptr;
  }

  static const Op& definition(const StagePlan& s, Name name) {
    const auto it =
        std::find_if(s.ops.begin(), s.ops.end(), [&](const Op& op) { return defined(op) == name; });
    NAUT_CHECK(it != s.ops.end(), "`{}` has no definition", name.str());
    return *it;
  }

  // The op with its variable replaced and its tile renamed; `names` grows by the tile's new name.
  Op copied(const Op& op, const expr::Substitution& map, Renaming& names) {
    Op out = simplified(substitute(op, map, pool_));
    if (const auto* l = out.get<Let>()) {
      // Scalars are not renamed by rename(); lets inside loops were resolved before.
      return ir::make(Let{l->name, rename(l->value, names, pool_)}, op.span());
    }
    const Name name = defined(op);
    out = rename(out, names, pool_);
    if (!name) return out;
    const Name fresh = names_.copy(name);
    names.insert_or_assign(name, fresh);
    return rename(out, {{name, fresh}}, pool_);
  }

  Op simplified(const Op& op) {
    return ir::map_exprs(op, [&](Expr e) { return simplified(e); });
  }

  // Simplifies after a variable was replaced by a number.
  Expr simplified(Expr e) {
    return expr::rebuild(pool_, e, [&](Expr x) {
      if (x.dtype() != ir::DType::I64 || x.args().size() != 2) return x;
      if (x.op() == EK::Mul && (x[0].is_int(0) || x[1].is_int(0))) return pool_.integer(0);
      if (x.op() != EK::Add) return x;
      if (x[0].is_int(0)) return x[1];
      if (x[1].is_int(0)) return x[0];
      const bool is_constant =
          x[1].op() == EK::IntConst && x[0].op() == EK::Add && x[0][1].op() == EK::IntConst;
      if (!is_constant) return x;
      const int64_t sum = x[1].integer() + x[0][1].integer();
      return sum == 0 ? x[0][0] : pool_.binary(EK::Add, x[0][0], pool_.integer(sum));
    });
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  Names names_;
  Fills fills_;
  expr::Facts facts_;
  expr::Substitution lets_;
  decision::Choice<decision::Pipeline> choice_;
  bool is_refused_ = false;
};

// Scalars defined inside loops are written out, so that copies of an iteration need no names for
// them.
Block without_inner_lets(const Block& ops, bool is_in_loop, expr::Substitution map,
                         expr::ExprPool& pool) {
  Block out;
  for (const Op& op : ops) {
    const Op mapped = map.empty() ? op : substitute(op, map, pool);
    if (const auto* l = mapped.get<Let>(); l && is_in_loop) {
      map.insert_or_assign(pool.var(l->name, l->value.dtype()), l->value);
    } else if (const Block* body = body_of(mapped)) {
      out.push_back(
          with_body(mapped, without_inner_lets(*body, is_in_loop || mapped.is<For>(), map, pool)));
    } else {
      out.push_back(mapped);
    }
  }
  return out;
}

}  // namespace

std::optional<ir::Program> pipeline_loops(const ir::Program& program, ir::PassContext& context) {
  const Block plain = without_inner_lets(program.body, false, {}, context.pool);
  Pipeliner pipeliner(program, context);
  Block body = pipeliner.block(plain);
  if (pipeliner.is_refused()) return std::nullopt;
  return ir::Program{program.level, program.name, std::move(body)};
}

}  // namespace nautilus::vrtile
