// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/reverse_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "decision/choice.h"
#include "vrtile/live_range.h"
#include "vrtile/references.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

// Whether the steps of one loop may run in any order.
class OrderCheck {
 public:
  OrderCheck(const For& loop, const References& references, expr::ExprPool& pool)
      : loop_(loop), references_(references), pool_(pool) {}

  bool is_free() {
    for (const Op& op : loop_.body) {
      if (op.is<For>() || op.is<Store>()) return false;
      if (op.is<Carry>()) carries_.push_back(op.as<Carry>());
      if (const Name n = defined(op)) definitions_.insert_or_assign(n, op);
    }
    for (const Carry& c : carries_) {
      if (const auto r = references_.reference(loop_, c)) found_.push_back(*r);
    }
    find_sources();
    for (const Reference& r : found_) {
      if (!sources_of(r.local).empty()) return false;
    }
    return std::all_of(carries_.begin(), carries_.end(), [&](const Carry& c) {
      return std::any_of(found_.begin(), found_.end(),
                         [&](const Reference& r) { return r.carry.name == c.name; }) ||
             is_accumulated(c);
    });
  }

 private:
  // What a tile depends on: carries, and new references (by the name of the next value), whose own
  // dependence on the old ones does not count.
  void find_sources() {
    for (const Op& op : loop_.body) {
      const Name name = defined(op);
      if (!name) continue;
      if (op.is<Carry>()) {
        sources_[name] = {std::string(name.str())};
        continue;
      }
      std::set<std::string> all;
      for_each_use(op, [&](Name n) {
        const auto it = sources_.find(n);
        if (it != sources_.end()) all.insert(it->second.begin(), it->second.end());
      });
      for (const Reference& r : found_) {
        if (r.next.name == name) all = {std::string(name.str())};
      }
      sources_[name] = std::move(all);
    }
  }

  std::set<std::string> sources_of(Expr e) const {
    std::set<std::string> all;
    expr::for_each(e, [&](Expr x) {
      if (x.op() == EK::Read) add_sources(x.name(), all);
    });
    return all;
  }

  void add_sources(Name tile, std::set<std::string>& all) const {
    const auto it = sources_.find(tile);
    if (it != sources_.end()) all.insert(it->second.begin(), it->second.end());
  }

  // next is carry (+) what a step adds, or carry * factor + that.
  bool is_accumulated(const Carry& c) {
    carry_ = &c;
    added_.clear();
    combiner_.reset();
    factor_of_.reset();
    if (!is_chain(c.next)) return false;
    std::set<std::string> allowed;
    if (factor_of_) {
      // Relative to a reference: the same for every sequence of them, so for every order.
      if (combiner_ && *combiner_ != EK::Add) return false;
      Reference r = *factor_of_;
      std::string why;
      if (!references_.has_any_gauge(loop_, r, {}, &why)) return false;
      allowed.insert(std::string(r.next.name.str()));
    }
    return std::includes(allowed.begin(), allowed.end(), added_.begin(), added_.end());
  }

  bool is_chain(Name tile) {
    if (tile == carry_->name) return true;
    const auto it = definitions_.find(tile);
    if (it == definitions_.end()) return false;
    if (const auto* s = it->second.get<Set>()) return is_chain(s->value, s->axes);
    const auto* d = it->second.get<Dot>();
    if (!d || !d->acc || !combines_by(EK::Add)) return false;
    add_sources(d->a, added_);
    add_sources(d->b, added_);
    return is_chain(d->acc);
  }

  bool is_chain(Expr e, const ir::Axes& axes) {
    if (e.op() == EK::Read) {
      if (e.args().size() != axes.size()) return false;
      for (size_t k = 0; k < axes.size(); ++k) {
        if (e[k] != pool_.index(axes[k].name)) return false;
      }
      return is_chain(e.name());
    }
    const bool is_combination = e.op() == EK::Add || e.op() == EK::Max || e.op() == EK::Min;
    if (!is_combination && e.op() != EK::Mul) return false;
    for (size_t k = 0; k < 2; ++k) {
      const Expr other = e[1 - k];
      if (!has_carry(e[k]) || has_carry(other)) continue;
      if (is_combination) {
        if (!combines_by(e.op())) return false;
        const auto more = sources_of(other);
        added_.insert(more.begin(), more.end());
        return is_chain(e[k], axes);
      }
      return takes_factor(other) && is_chain(e[k], axes);
    }
    return false;
  }

  bool has_carry(Expr e) const { return sources_of(e).contains(std::string(carry_->name.str())); }

  bool combines_by(EK op) {
    if (combiner_ && *combiner_ != op) return false;
    combiner_ = op;
    return true;
  }

  bool takes_factor(Expr f) {
    const auto it = f.op() == EK::Read ? definitions_.find(f.name()) : definitions_.end();
    if (it == definitions_.end() || !it->second.is<Set>()) return false;
    for (const Reference& r : found_) {
      if (!references_.is_factor(it->second.as<Set>(), r)) continue;
      if (factor_of_ && factor_of_->carry.name != r.carry.name) return false;
      factor_of_ = r;
      return true;
    }
    return false;
  }

  const For& loop_;
  const References& references_;
  expr::ExprPool& pool_;
  std::vector<Carry> carries_;
  std::vector<Reference> found_;
  std::unordered_map<Name, Op> definitions_;
  std::unordered_map<Name, std::set<std::string>> sources_;
  const Carry* carry_ = nullptr;
  std::set<std::string> added_;
  std::optional<EK> combiner_;
  std::optional<Reference> factor_of_;
};

class Reverser {
 public:
  Reverser(const ir::Program& program, ir::PassContext& context)
      : pool_(context.pool), references_(program, context.pool), choice_(context) {}

  bool is_refused() const { return is_refused_; }

  Block block(const Block& ops) {
    Block out;
    for (const Op& op : ops) {
      references_.add(op);
      if (const auto* l = op.get<Let>()) {
        if (depends_on_group(l->value)) groups_.insert(pool_.var(l->name, l->value.dtype()));
      }
      if (const auto* p = op.get<Par>()) {
        if (p->kind == ParKind::Group) {
          for (const ir::Axis& a : p->axes) groups_.insert(pool_.index(a.name));
        }
        Block body = p->body;
        if (p->kind == ParKind::Grid) {
          choice_.begin(body);
          is_any_down_ = false;
        }
        out.push_back(with_body(op, block(body)));
        if (p->kind == ParKind::Grid) is_refused_ |= !choice_.end("the kernel has no loop");
      } else if (op.is<For>()) {
        out.push_back(loop(op));
      } else {
        out.push_back(op);
      }
    }
    return out;
  }

 private:
  bool depends_on_group(Expr e) const {
    const auto vars = expr::free_vars(e);
    return std::any_of(vars.begin(), vars.end(), [&](Expr v) { return groups_.contains(v); });
  }

  // Warp groups that end at different steps begin together, and masked steps come first.
  bool is_better_down(const For& f) const {
    const LiveRange live = live_range(f, pool_);
    const bool ends_masked = live.from.empty() && !live.to.empty();
    return (depends_on_group(f.to) || ends_masked) && is_reversible(f);
  }

  bool is_reversible(const For& f) const {
    return !depends_on_group(f.from) && OrderCheck(f, references_, pool_).is_free();
  }

  Op loop(const Op& op) {
    using decision::LoopDirection;
    For f = op.as<For>();
    if (f.direction != Direction::Up) return op;
    const auto* asked = choice_.asked();
    const bool is_wanted = asked ? asked->direction == LoopDirection::Down : is_better_down(f);
    if (is_wanted && !is_reversible(f)) {
      choice_.refuse("the steps of this loop cannot run from the last to the first");
      return op;
    }
    if (!is_wanted) {
      if (!is_any_down_) choice_.took({LoopDirection::Up});
      return op;
    }
    is_any_down_ = true;
    choice_.took({LoopDirection::Down});
    const Expr first = f.from;
    f.from = pool_.binary(EK::Add, f.to, pool_.integer(-1));
    f.to = first;
    f.direction = Direction::Down;
    return ir::make(std::move(f), op.span());
  }

  expr::ExprPool& pool_;
  References references_;
  std::unordered_set<Expr> groups_;
  decision::Choice<decision::LoopOrder> choice_;
  bool is_any_down_ = false;
  bool is_refused_ = false;
};

}  // namespace

std::optional<ir::Program> reverse_loops(const ir::Program& program, ir::PassContext& context) {
  Reverser reverser(program, context);
  Block body = reverser.block(program.body);
  if (reverser.is_refused()) return std::nullopt;
  return ir::Program{program.level, program.name, std::move(body)};
}

}  // namespace nautilus::vrtile
