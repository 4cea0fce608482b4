// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/pipeline_loops.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "decision/choice.h"
#include "expr/bounds/bounds.h"
#include "ir/walk.h"
#include "vrtile/conditions.h"
#include "vrtile/empty_step.h"
#include "vrtile/names.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

// The stages of a loop's ops and their order.
struct StagePlan {
  std::vector<Op> ops;  // without carries, as they stand
  std::vector<Carry> carries;
  std::vector<int> stage;     // by position in ops
  std::vector<size_t> order;  // positions in ops
};

class Stager {
 public:
  Stager(const For& loop, Names& names, expr::ExprPool& pool) : names_(names), pool_(pool) {
    for (const Op& op : loop.body) {
      if (const auto* c = op.get<Carry>()) {
        out_.carries.push_back(*c);
      } else {
        out_.ops.push_back(op);
      }
    }
    for (size_t k = 0; k < out_.ops.size(); ++k) {
      if (const Name n = name_of(out_.ops[k])) definition_.emplace(n, k);
    }
  }

  // Empty if no product needs another one, or if no legal order was found.
  std::optional<StagePlan> run() {
    for (const Op& op : out_.ops) {
      if (op.is<For>() || op.is<Store>()) return std::nullopt;
    }
    choose_stages();
    load_again();
    if (std::find(out_.stage.begin(), out_.stage.end(), 1) == out_.stage.end()) return std::nullopt;
    choose_order();
    if (!is_legal()) return std::nullopt;
    return std::move(out_);
  }

 private:
  static Name name_of(const Op& op) { return op.is<Let>() ? op.as<Let>().name : defined(op); }

  // Positions of the ops of the same iteration that op k needs.
  std::vector<size_t> needs(size_t k) const {
    std::vector<size_t> out;
    for_each_use(out_.ops[k], [&](Name n) {
      const auto it = definition_.find(n);
      if (it != definition_.end()) out.push_back(it->second);
    });
    return out;
  }

  void choose_stages() {
    const size_t count = out_.ops.size();
    std::vector<bool> has_dot(count);  // needs a product of the same iteration
    out_.stage.assign(count, 0);
    for (size_t k = 0; k < count; ++k) {
      for (size_t u : needs(k)) {
        if (has_dot[u] || out_.ops[u].is<Dot>()) has_dot[k] = true;
        if (out_.stage[u] == 1) out_.stage[k] = 1;
      }
      if (out_.ops[k].is<Dot>() && has_dot[k]) out_.stage[k] = 1;
    }
    // A load that only late ops use is as late as they are.
    for (size_t k = 0; k < count; ++k) {
      if (!out_.ops[k].is<Load>() || !needs(k).empty()) continue;
      bool is_used = false;
      bool is_late = true;
      for (size_t v = 0; v < count; ++v) {
        const auto used = needs(v);
        if (std::find(used.begin(), used.end(), k) == used.end()) continue;
        is_used = true;
        is_late &= out_.stage[v] == 1;
      }
      for (const Carry& c : out_.carries) is_late &= c.next != defined(out_.ops[k]);
      if (is_used && is_late) out_.stage[k] = 1;
    }
  }

  // Operands of products live in shared memory and are not carried: where products of both stages
  // take the same tile, it is loaded for each.
  void load_again() {
    const size_t count = out_.ops.size();
    for (size_t k = 0; k < count; ++k) {
      const Name name = defined(out_.ops[k]);
      if (!out_.ops[k].is<Load>() || out_.stage[k] == 1 || !is_operand_of(name, 1)) continue;
      const Name again = names_.copy(name);
      out_.ops.push_back(rename(out_.ops[k], {{name, again}}, pool_));
      out_.stage.push_back(1);
      definition_.emplace(again, out_.ops.size() - 1);
      for (size_t v = 0; v < count; ++v) {
        if (out_.stage[v] == 1) out_.ops[v] = rename(out_.ops[v], {{name, again}}, pool_);
      }
      for (Carry& c : out_.carries) {
        NAUT_CHECK(c.next != again, "`{}` is carried", name.str());
      }
    }
    sort_by_need();
  }

  bool is_operand_of(Name name, int stage) const {
    for (size_t v = 0; v < out_.ops.size(); ++v) {
      const auto* d = out_.ops[v].get<Dot>();
      if (d && out_.stage[v] == stage && (d->a == name || d->b == name)) return true;
    }
    return false;
  }

  // Copies that were added at the end stand before their readers.
  void sort_by_need() {
    std::vector<size_t> order;
    std::vector<bool> is_placed(out_.ops.size());
    auto place = [&](auto& self, size_t k) -> void {
      if (is_placed[k]) return;
      is_placed[k] = true;
      for (size_t u : needs(k)) self(self, u);
      order.push_back(k);
    };
    for (size_t k = 0; k < out_.ops.size(); ++k) place(place, k);
    std::vector<Op> ops;
    std::vector<int> stage;
    for (size_t k : order) {
      ops.push_back(out_.ops[k]);
      stage.push_back(out_.stage[k]);
    }
    out_.ops = std::move(ops);
    out_.stage = std::move(stage);
    definition_.clear();
    for (size_t k = 0; k < out_.ops.size(); ++k) {
      if (const Name n = name_of(out_.ops[k])) definition_.emplace(n, k);
    }
  }

  // Stage 0 up to its last product that needs no other one, then what is late, then the rest.
  void choose_order() {
    const size_t count = out_.ops.size();
    std::unordered_set<size_t> first;
    for (size_t k = 0; k < count; ++k) {
      if (out_.ops[k].is<Dot>() && out_.stage[k] == 0) add_with_needs(k, first);
    }
    for (size_t k = 0; k < count; ++k) {
      if (first.contains(k)) out_.order.push_back(k);
    }
    for (size_t k = 0; k < count; ++k) {
      if (out_.stage[k] == 1) out_.order.push_back(k);
    }
    for (size_t k = 0; k < count; ++k) {
      if (out_.stage[k] == 0 && !first.contains(k)) out_.order.push_back(k);
    }
  }

  void add_with_needs(size_t k, std::unordered_set<size_t>& set) const {
    if (!set.insert(k).second) return;
    for (size_t u : needs(k)) add_with_needs(u, set);
  }

  bool is_legal() const {
    std::vector<size_t> place(out_.ops.size());
    for (size_t k = 0; k < out_.order.size(); ++k) place[out_.order[k]] = k;
    auto is_kept = [&](size_t u, size_t v, int distance) {
      const int slack = out_.stage[v] + distance - out_.stage[u];
      return slack > 0 || (slack == 0 && place[u] < place[v]);
    };
    for (size_t v = 0; v < out_.ops.size(); ++v) {
      for (size_t u : needs(v)) {
        if (!is_kept(u, v, 0)) return false;
      }
      bool is_ok = true;
      for_each_use(out_.ops[v], [&](Name n) {
        for (const Carry& c : out_.carries) {
          if (c.name != n) continue;
          const auto next = definition_.find(c.next);
          // A carry of a carry, or of a tile from outside, is left alone.
          if (next == definition_.end()) {
            is_ok &= out_.stage[v] == 0;
          } else {
            is_ok &= is_kept(next->second, v, 1);
          }
        }
      });
      if (!is_ok) return false;
    }
    return true;
  }

  Names& names_;
  expr::ExprPool& pool_;
  StagePlan out_;
  std::unordered_map<Name, size_t> definition_;
};

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
    Renaming after;  // names of values behind a loop that was pipelined
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
    std::optional<StagePlan> plan = Stager(op.as<For>(), names_, pool_).run();
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
    const For& loop = *range;
    const StagePlan& s = *plan;
    std::unordered_map<Name, int> stage;  // of tiles; a carry has the stage of its next
    for (size_t k = 0; k < s.ops.size(); ++k) {
      const Name n = s.ops[k].is<Let>() ? s.ops[k].as<Let>().name : defined(s.ops[k]);
      if (n) stage.emplace(n, s.stage[k]);
    }
    const auto stage_of = [&](Name n) {
      const auto it = stage.find(n);
      return it == stage.end() ? 0 : it->second;
    };

    // First iteration, stage 0.
    const bool is_up = loop.direction == Direction::Up;
    const Expr var = pool_.index(loop.var);
    Renaming first;
    for (const Carry& c : s.carries) first.emplace(c.name, c.init);
    for (size_t k : s.order) {
      if (s.stage[k] == 0) out.push_back(copied(s.ops[k], {{var, loop.from}}, first));
    }

    // Values of stage 0 that late ops need.
    Renaming late;
    Block carries;
    std::vector<std::pair<Name, Name>> deep;  // value, its carry
    for (size_t k = 0; k < s.ops.size(); ++k) {
      if (s.stage[k] == 0) continue;
      for_each_use(s.ops[k], [&](Name n) {
        const Carry* carry = find(s.carries, n);
        const bool is_early =
            carry ? stage_of(carry->next) == 0 : stage.contains(n) && stage.at(n) == 0;
        if (!is_early || late.contains(n)) return;
        const Name held = names_.fresh(std::string(n.str()) + "_late");
        late.emplace(n, held);
        deep.emplace_back(n, held);
      });
    }
    Renaming direct;  // stage 0 reads what a late op of this iteration of the new loop has made
    for (const Carry& c : s.carries) {
      if (stage_of(c.next) == 1) {
        direct.emplace(c.name, c.next);
        carries.push_back(ir::make(c, op.span()));
      } else {
        const auto next = first.find(c.next);
        const Name from = next == first.end() ? c.next : next->second;
        carries.push_back(ir::make(Carry{c.name, c.type, from, c.next}, op.span()));
      }
    }
    for (const auto& [value, held] : deep) {
      const Carry* carry = find(s.carries, value);
      const Name from = first.at(value);
      carries.push_back(
          ir::make(Carry{held, carry ? carry->type : type_of(definition(s, value)), from, value}));
    }

    // The loop.
    const Expr step = pool_.integer(is_up ? -1 : 1);
    const Expr previous = pool_.binary(EK::Add, var, step);
    Block body = carries;
    for (size_t k : s.order) {
      if (s.stage[k] == 0) {
        body.push_back(rename(s.ops[k], direct, pool_));
      } else {
        body.push_back(
            simplified(substitute(rename(s.ops[k], late, pool_), {{var, previous}}, pool_)));
      }
    }
    const Expr from = simplified(pool_.binary(EK::Add, loop.from, pool_.integer(is_up ? 1 : -1)));
    out.push_back(
        ir::make(For{loop.var, from, loop.direction, loop.to, std::move(body)}, op.span()));

    // Last iteration, stage 1.
    const Expr last =
        is_up ? simplified(pool_.binary(EK::Add, loop.to, pool_.integer(-1))) : loop.to;
    Renaming end = late;
    for (size_t k : s.order) {
      if (s.stage[k] == 1) out.push_back(copied(s.ops[k], {{var, last}}, end));
    }
    for (const Carry& c : s.carries) {
      if (stage_of(c.next) == 1) after.insert_or_assign(c.name, end.at(c.next));
    }
  }

  // Kernels bring operands of products ahead of their use: they want to know that there are some.
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

  // What putting a number in the place of a variable leaves behind.
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
