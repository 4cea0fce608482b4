// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/place_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "expr/simplify.h"
#include "ir/walk.h"
#include "matile/passes/rewrite.h"
#include "matile/passes/ring_sequence.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

// A product that was issued and not waited for.
struct Group {
  ir::Name acc;
  ir::Name a;
  std::vector<std::pair<std::string, int>> slots;  // ring, number of the slot
};

class WaitPlacer {
 public:
  WaitPlacer(const ir::Program& program, const Kernel& kernel, const Role& role,
             ir::PassContext& context)
      : kernel_(kernel),
        role_(role),
        pool_(context.pool),
        sink_(context.sink),
        scalars_(program, kernel, role, context.pool) {
    for (const Op& op : kernel.body) {
      if (const auto* stage = op.get<Stage>(); stage && stage->ring)
        staged_on_.emplace(stage->name.str(), stage->ring.str());
      const auto* ring = op.get<Ring>();
      if (!ring) continue;
      slots_.emplace(ring->name.str(), static_cast<int>(ring->slots.value_or(1)));
      for (const Op& part : ring->body)
        ring_of_.emplace(part.as<Part>().name.str(), ring->name.str());
    }
  }

  std::optional<Role> run() {
    Role out = role_;
    out.body.clear();
    for (const Op& op : role_.body) {
      const auto* each = op.get<Each>();
      if (!each) {
        out.body.push_back(op);
        continue;
      }
      ir::Block body = walk(each->body, false);
      if (is_refused_) return std::nullopt;
      out.body.push_back(with_block(op, std::move(body)));
    }
    return out;
  }

 private:
  // Where the walk stands: what comes after it in this block.
  struct Frame {
    const ir::Block* block;
    size_t next;
    bool is_loop;
  };

  void refuse(std::string message) {
    if (!is_refused_)
      sink_.report(diag::Code::NotVerified, {},
                   fmt::format("kernel `{}`: {}", kernel_.name.str(), message));
    is_refused_ = true;
  }

  ir::Block walk(const ir::Block& ops, bool is_loop) {
    ir::Block out;
    frames_.push_back({&ops, 0, is_loop});
    for (size_t k = 0; k < ops.size(); ++k) {
      frames_.back().next = k + 1;
      visit(ops[k], out);
    }
    wait_all(out);
    release(out);
    frames_.pop_back();
    return out;
  }

  void visit(const Op& op, ir::Block& out) {
    switch (kind(op)) {
      case Kind::Get:
        return get(op, out);
      case Kind::Dot:
        return dot(op, out);
      case Kind::Skip:
        drain_ring(op.as<Skip>().ring, out);
        break;
      case Kind::Jump:
        drain_ring(op.as<Jump>().ring, out);
        break;
      case Kind::Loop:
        if (is_product_loop(op.as<Loop>())) return product_loop(op, out);
        if (is_computed_loop(op.as<Loop>())) return computed_loop(op, out);
        return region(op, out, true);
      case Kind::Unroll:
        return region(op, out, true);
      case Kind::If: {
        bool steps = false;
        ir::for_each_op(*block_of(op),
                        [&](const Op& o) { steps |= o.is<Get>() || o.is<Dot>() || o.is<Take>(); });
        if (steps) return region(op, out, false);
        break;
      }
      case Kind::Take:
        if (slot_of(op.as<Take>().part) < 0) refuse("a part is taken before it was got");
        if (const Op* reader = reader_of(op.as<Take>())) {
          readers_.insert_or_assign(ring_of_.find(op.as<Take>().part.str())->second, reader);
          touch(*reader, out);
        }
        break;
      default:
        break;
    }
    touch(op, out);
    out.push_back(op);
    const auto is_done =
        std::erase_if(readers_, [&](const auto& reader) { return reader.second == &op; });
    if (op.is<Take>() || op.is<Store>() || is_done > 0) release(out);
  }

  // The op that uses what a take loads, if nothing but other takes stands between them. What it
  // waits for goes in front of the take and the release behind it, so that its elements need not
  // all be in registers at once.
  const Op* reader_of(const Take& take) const {
    const Frame& frame = frames_.back();
    for (size_t k = frame.next; k < frame.block->size(); ++k) {
      const Op& op = (*frame.block)[k];
      if (op.is<Take>() || op.is<Get>()) continue;
      const bool is_work = op.is<Set>() || op.is<Fold>();
      return is_work && touched_by(op).reads.contains(take.tile.str()) ? &op : nullptr;
    }
    return nullptr;
  }

  // --- slots --------------------------------------------------------------------------------

  int slot_of(ir::Name part) {
    const auto ring = ring_of_.find(part.str());
    if (ring == ring_of_.end()) return -1;
    const auto& held = held_[ring->second];
    return held.empty() ? -1 : held.back();
  }

  void get(const Op& op, ir::Block& out) {
    const std::string ring(op.as<Get>().ring.str());
    auto& held = held_[ring];
    if (static_cast<int>(held.size()) >= slots_.at(ring)) {
      wait_for_slot(ring, held.front(), out);
      release(out);
      if (static_cast<int>(held.size()) >= slots_.at(ring))
        refuse(fmt::format("more slots of `{}` are in use at once than it has", ring));
    }
    held.push_back(next_slot_++);
    out.push_back(op);
  }

  void wait_for_slot(const std::string& ring, int slot, ir::Block& out) {
    for (size_t g = pending_.size(); g-- > 0;) {
      const auto& slots = pending_[g].slots;
      if (std::find(slots.begin(), slots.end(), std::make_pair(ring, slot)) == slots.end())
        continue;
      return wait_through(g + 1, out);
    }
  }

  void drain_ring(ir::Name name, ir::Block& out) {
    auto& held = held_[std::string(name.str())];
    while (!held.empty() && !is_refused_) {
      const size_t before = held.size();
      wait_for_slot(std::string(name.str()), held.front(), out);
      release(out);
      if (held.size() == before) refuse(fmt::format("a slot of `{}` is in use here", name.str()));
    }
  }

  void release(ir::Block& out) {
    for (auto& [ring, held] : held_) {
      if (readers_.contains(ring)) continue;
      while (!held.empty() && !is_read_in_flight(ring, held.front()) &&
             (held.size() > 1 || !is_read_later(ring))) {
        out.push_back(ir::make(Release{pool_.name(ring)}));
        held.pop_front();
      }
    }
  }

  bool is_read_in_flight(const std::string& ring, int slot) const {
    return std::any_of(pending_.begin(), pending_.end(), [&](const Group& g) {
      return std::find(g.slots.begin(), g.slots.end(), std::make_pair(ring, slot)) != g.slots.end();
    });
  }

  enum class Next : uint8_t { Read, Got, None };

  bool is_part_of(ir::Name part, const std::string& ring) const {
    const auto it = ring_of_.find(part.str());
    return it != ring_of_.end() && it->second == ring;
  }

  Next first_use(const Op& op, const std::string& ring) const {
    if (const auto* d = op.get<Dot>())
      return is_part_of(d->a, ring) || is_part_of(d->b, ring) ? Next::Read : Next::None;
    if (const auto* t = op.get<Take>()) return is_part_of(t->part, ring) ? Next::Read : Next::None;
    if (const auto* s = op.get<Store>()) {
      const auto it = staged_on_.find(s->stage.str());
      return it != staged_on_.end() && it->second == ring ? Next::Read : Next::None;
    }
    if (const auto* g = op.get<Get>()) return g->ring.str() == ring ? Next::Got : Next::None;
    const ir::Block* inner = block_of(op);
    if (!inner) return Next::None;
    const Next next = first_use(*inner, 0, inner->size(), ring);
    // The block may not run at all.
    return next == Next::Got && !op.is<Unroll>() ? Next::None : next;
  }

  Next first_use(const ir::Block& block, size_t from, size_t to, const std::string& ring) const {
    for (size_t k = from; k < to; ++k) {
      const Next next = first_use(block[k], ring);
      if (next != Next::None) return next;
    }
    return Next::None;
  }

  // Whether some path from here reads the newest slot of the ring before another is got.
  bool is_read_later(const std::string& ring) const {
    for (size_t f = frames_.size(); f-- > 0;) {
      const Frame& frame = frames_[f];
      const Next rest = first_use(*frame.block, frame.next, frame.block->size(), ring);
      if (rest == Next::Read) return true;
      if (rest == Next::Got) return false;
      if (frame.is_loop && first_use(*frame.block, 0, frame.next, ring) == Next::Read) return true;
    }
    return false;
  }

  // --- products -----------------------------------------------------------------------------

  void wait_through(size_t count, ir::Block& out) {
    while (count > 0) {
      // Of products into one accumulator only the last is worth a wait of its own.
      size_t last = 0;
      for (size_t k = 0; k < count; ++k) {
        if (pending_[k].acc == pending_[0].acc) last = k;
      }
      const bool is_chain =
          std::all_of(pending_.begin(), pending_.begin() + static_cast<long>(last) + 1,
                      [&](const Group& g) { return g.acc == pending_[0].acc; });
      const size_t n = is_chain ? last + 1 : 1;
      out.push_back(ir::make(Wait{static_cast<int64_t>(pending_.size() - n), pending_[n - 1].acc}));
      pending_.erase(pending_.begin(), pending_.begin() + static_cast<long>(n));
      count -= n;
    }
    release(out);
  }

  void wait_all(ir::Block& out) {
    if (!pending_.empty()) wait_through(pending_.size(), out);
  }

  // In front of the op that is visited: what it reads is still needed.
  void wait_before(ir::Block& out) {
    --frames_.back().next;
    wait_all(out);
    ++frames_.back().next;
  }

  void touch(const Op& op, ir::Block& out) {
    if (pending_.empty()) return;
    const Touched t = touched_by(op);
    size_t count = 0;
    for (size_t g = 0; g < pending_.size(); ++g) {
      if (t.mentions(pending_[g].acc.str()) || t.writes.contains(pending_[g].a.str()))
        count = g + 1;
    }
    if (count > 0) wait_through(count, out);
  }

  void dot(const Op& op, ir::Block& out) {
    const auto& d = op.as<Dot>();
    size_t count = 0;
    for (size_t g = 0; g < pending_.size(); ++g) {
      const bool is_chain = g + 1 == pending_.size() && d.mode == DotMode::Add;
      if ((pending_[g].acc == d.acc && !is_chain) || pending_[g].acc == d.a ||
          pending_[g].a == d.acc)
        count = g + 1;
    }
    if (count > 0) wait_through(count, out);
    Group group{d.acc, {}, {}};
    for (ir::Name operand : {d.a, d.b}) {
      const auto ring = ring_of_.find(operand.str());
      if (ring == ring_of_.end()) {
        group.a = operand;
        continue;
      }
      const int slot = slot_of(operand);
      if (slot < 0) refuse(fmt::format("`{}` is an operand before it was got", operand.str()));
      group.slots.emplace_back(ring->second, slot);
    }
    pending_.push_back(std::move(group));
    out.push_back(op);
  }

  // --- loops --------------------------------------------------------------------------------

  void region(const Op& op, ir::Block& out, bool is_loop) {
    wait_before(out);
    const auto held = held_;
    ir::Block body = walk(*block_of(op), is_loop);
    for (const auto& [ring, slots] : held_) {
      const auto it = held.find(ring);
      if (slots.size() != (it == held.end() ? 0 : it->second.size()))
        refuse(fmt::format("a slot of `{}` would be held over the end of a block", ring));
    }
    out.push_back(with_block(op, std::move(body)));
    release(out);
  }

  static bool is_product_loop(const Loop& loop) {
    bool has_dot = false;
    for (const Op& op : loop.body) {
      has_dot |= op.is<Dot>();
      if (!op.is<Dot>() && !op.is<Get>() && !op.is<Let>()) return false;
    }
    return has_dot;
  }

  // `set acc[...] = 0.0` at the end of what was written; removed if the accumulator is not touched
  // after it.
  bool take_zero(ir::Name acc, ir::Block& out) {
    for (size_t k = out.size(); k-- > 0;) {
      if (!touched_by(out[k]).mentions(acc.str())) continue;
      const auto* set = out[k].get<Set>();
      const bool is_zero = set && set->value.op() == EK::FloatConst && set->value.number() == 0;
      if (!is_zero) return false;
      out.erase(out.begin() + static_cast<long>(k));
      return true;
    }
    return false;
  }

  // All operands come from slots of this loop's own rings, of which two can be held.
  bool can_lag(const Loop& loop) {
    if (decision(kernel_, "in_flight").value_or(1) == 0) return false;
    Names got;
    Names accumulators;
    for (const Op& op : loop.body) {
      if (const auto* d = op.get<Dot>()) accumulators.emplace(d->acc.str());
      if (const auto* g = op.get<Get>()) {
        if (!got.emplace(g->ring.str()).second || slots_.at(std::string(g->ring.str())) < 2)
          return false;
      }
    }
    // Products into one accumulator follow each other; another one between them breaks the chain.
    if (accumulators.size() != 1) return false;
    const bool is_up = loop.direction == Direction::Up;
    return is_up ? scalars_.is_at_least(loop.to, pool_.binary(EK::Add, loop.from, pool_.integer(1)))
                 : scalars_.is_at_least(loop.from, loop.to);
  }

  void product_loop(const Op& op, ir::Block& out) {
    const auto& loop = op.as<Loop>();
    wait_before(out);
    if (!can_lag(loop)) return region(op, out, true);
    expr::Simplifier simplifier(pool_);
    const expr::Substitution first{{pool_.index(loop.var), loop.from}};
    Names initialised;
    for (const Op& inner : loop.body) {
      if (inner.is<Let>()) return region(op, out, true);
      Op peeled = ir::map_exprs(inner, [&](Expr e) {
        const Expr at = expr::substitute(pool_, e, first);
        return at == e ? e : simplifier.simplify(at);
      });
      if (const auto* d = peeled.get<Dot>(); d && d->mode == DotMode::Add &&
                                             !initialised.contains(d->acc.str()) &&
                                             take_zero(d->acc, out)) {
        Dot init = *d;
        init.mode = DotMode::Init;
        initialised.emplace(d->acc.str());
        peeled = ir::make(std::move(init), op.span());
      }
      visit(peeled, out);
    }
    const auto in_flight = static_cast<int64_t>(pending_.size());
    Loop rest = loop;
    const int64_t one = loop.direction == Direction::Up ? 1 : -1;
    rest.from = simplifier.simplify(pool_.binary(EK::Add, loop.from, pool_.integer(one)));
    rest.body.push_back(ir::make(Wait{in_flight, {}}));
    for (const Op& inner : loop.body) {
      if (const auto* g = inner.get<Get>()) rest.body.push_back(ir::make(Release{g->ring}));
    }
    out.push_back(ir::make(std::move(rest), op.span()));
  }

  // One product of an operand that the loop computes in registers, and nothing that reads the sum:
  // the product of a step runs while the operand of the next is computed.
  bool is_computed_loop(const Loop& loop) {
    const Dot* product = nullptr;
    for (const Op& op : loop.body) {
      if (!op.is<Get>() && !op.is<Take>() && !op.is<Set>() && !op.is<Fold>() && !op.is<Dot>())
        return false;
      if (op.is<Dot>() && product) return false;
      if (const auto* d = op.get<Dot>()) product = d;
    }
    if (!product || product->mode != DotMode::Add || ring_of_.contains(product->a.str()) ||
        !can_lag(loop))
      return false;
    bool gets = false;
    for (const Op& op : loop.body) {
      const auto* g = op.get<Get>();
      gets |= g && is_part_of(product->b, std::string(g->ring.str()));
      if (!op.is<Dot>() && touched_by(op).mentions(product->acc.str())) return false;
    }
    return gets && loop.body.back().is<Dot>();
  }

  void computed_loop(const Op& op, ir::Block& out) {
    const auto& loop = op.as<Loop>();
    wait_before(out);
    expr::Simplifier simplifier(pool_);
    const expr::Substitution first{{pool_.index(loop.var), loop.from}};
    ir::Block peeled;
    for (const Op& inner : loop.body) {
      peeled.push_back(ir::map_exprs(inner, [&](Expr e) {
        const Expr at = expr::substitute(pool_, e, first);
        return at == e ? e : simplifier.simplify(at);
      }));
    }
    if (const auto& d = peeled.back().as<Dot>(); take_zero(d.acc, out)) {
      Dot init = d;
      init.mode = DotMode::Init;
      peeled.back() = ir::make(std::move(init), op.span());
    }
    visit_all(peeled, false, out);
    const auto held = held_;
    Loop rest = loop;
    rest.body.clear();
    const int64_t one = loop.direction == Direction::Up ? 1 : -1;
    rest.from = simplifier.simplify(pool_.binary(EK::Add, loop.from, pool_.integer(one)));
    visit_all(loop.body, true, rest.body);
    for (const auto& [ring, slots] : held_) {
      const auto it = held.find(ring);
      if (slots.size() != (it == held.end() ? 0 : it->second.size()))
        refuse(fmt::format("a slot of `{}` would be held over the end of a block", ring));
    }
    out.push_back(ir::make(std::move(rest), op.span()));
  }

  // As walk, but products may still run at the end.
  void visit_all(const ir::Block& ops, bool is_loop, ir::Block& out) {
    frames_.push_back({&ops, 0, is_loop});
    for (size_t k = 0; k < ops.size(); ++k) {
      frames_.back().next = k + 1;
      visit(ops[k], out);
    }
    frames_.pop_back();
  }

  const Kernel& kernel_;
  const Role& role_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  Scalars scalars_;
  std::map<std::string, std::string, std::less<>> ring_of_;  // by part
  std::map<std::string, std::string, std::less<>> staged_on_;
  std::map<std::string, int, std::less<>> slots_;
  std::deque<Group> pending_;
  std::map<std::string, std::deque<int>, std::less<>> held_;
  std::map<std::string, const Op*, std::less<>> readers_;  // by ring: of what was taken from it
  std::vector<Frame> frames_;
  int next_slot_ = 0;
  bool is_refused_ = false;
};

}  // namespace

std::optional<ir::Program> place_waits(const ir::Program& program, ir::PassContext& context) {
  auto out =
      map_kernels(program, KernelForm::Roles, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel finished{.name = kernel.name, .cluster = kernel.cluster, .rank = kernel.rank};
        for (const Op& op : kernel.body) {
          const auto* role = op.get<Role>();
          if (op.is<Decide>()) continue;
          if (!role || role->unit != RoleUnit::Groups) {
            finished.body.push_back(op);
            continue;
          }
          auto placed = WaitPlacer(program, kernel, *role, context).run();
          if (!placed) return std::nullopt;
          finished.body.push_back(ir::make(std::move(*placed), op.span()));
        }
        return finished;
      });
  // Whether a kernel fits the machine shows only now.
  if (!out || !verify(*out, context.sink)) return std::nullopt;
  return out;
}

}  // namespace nautilus::matile
