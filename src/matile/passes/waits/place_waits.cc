// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/waits/place_waits.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/walk.h"
#include "matile/passes/waits/wait_placer.h"

namespace nautilus::matile {

using ir::Op;

std::optional<Role> WaitPlacer::run() {
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

void WaitPlacer::refuse(std::string message) {
  if (!is_refused_)
    sink_.report(diag::Code::NotVerified, {},
                 fmt::format("kernel `{}`: {}", kernel_.name.str(), message));
  is_refused_ = true;
}

ir::Block WaitPlacer::walk(const ir::Block& ops, bool is_loop) {
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

void WaitPlacer::visit(const Op& op, ir::Block& out) {
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
      if (slot_of(op.as<Take>().slot_tile) < 0) refuse("a slot tile is taken before it was got");
      if (const Op* reader = reader_of(op.as<Take>())) {
        readers_.insert_or_assign(ring_of_.find(op.as<Take>().slot_tile.str())->second, reader);
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

// As walk, but products may still run at the end.
void WaitPlacer::visit_all(const ir::Block& ops, bool is_loop, ir::Block& out) {
  frames_.push_back({&ops, 0, is_loop});
  for (size_t k = 0; k < ops.size(); ++k) {
    frames_.back().next = k + 1;
    visit(ops[k], out);
  }
  frames_.pop_back();
}

// The op that uses the tile of a take, if there are only other takes between them. Its waits come
// before the take and the release after it, so that its elements need not all be in registers at
// once.
const Op* WaitPlacer::reader_of(const Take& take) const {
  const Frame& frame = frames_.back();
  for (size_t k = frame.next; k < frame.block->size(); ++k) {
    const Op& op = (*frame.block)[k];
    if (op.is<Take>() || op.is<Get>()) continue;
    const bool is_work = op.is<Set>() || op.is<Fold>();
    return is_work && touched_by(op).reads.contains(take.tile.str()) ? &op : nullptr;
  }
  return nullptr;
}

void WaitPlacer::wait_through(size_t count, ir::Block& out) {
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

void WaitPlacer::wait_all(ir::Block& out) {
  if (!pending_.empty()) wait_through(pending_.size(), out);
}

// Before the op that is visited: what it reads is still needed.
void WaitPlacer::wait_before(ir::Block& out) {
  --frames_.back().next;
  wait_all(out);
  ++frames_.back().next;
}

void WaitPlacer::touch(const Op& op, ir::Block& out) {
  if (pending_.empty()) return;
  const Touched t = touched_by(op);
  size_t count = 0;
  for (size_t g = 0; g < pending_.size(); ++g) {
    if (t.mentions(pending_[g].acc.str()) || t.writes.contains(pending_[g].a.str())) count = g + 1;
  }
  if (count > 0) wait_through(count, out);
}

void WaitPlacer::dot(const Op& op, ir::Block& out) {
  const auto& d = op.as<Dot>();
  // The last products in flight, if they add to the same tile: they and this one form a chain.
  size_t chain = pending_.size();
  while (d.mode == DotMode::Add && chain > 0 && pending_[chain - 1].acc == d.acc) --chain;
  size_t count = 0;
  for (size_t g = 0; g < pending_.size(); ++g) {
    if ((pending_[g].acc == d.acc && g < chain) || pending_[g].acc == d.a || pending_[g].a == d.acc)
      count = g + 1;
  }
  if (count > 0) {
    --frames_.back().next;  // what this product reads is still needed
    wait_through(count, out);
    ++frames_.back().next;
  }
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

std::optional<ir::Program> place_waits(const ir::Program& program, ir::PassContext& context) {
  auto out =
      map_kernels(program, KernelForm::Roles, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel finished{.name = kernel.name,
                        .resident = kernel.resident,
                        .cluster = kernel.cluster,
                        .rank = kernel.rank};
        ir::Block body = kernel.body;
        decision::Choice<decision::InFlight> choice(context);
        choice.begin(body);
        for (const Op& op : body) {
          const auto* role = op.get<Role>();
          if (!role || role->unit != RoleUnit::Groups) {
            finished.body.push_back(op);
            continue;
          }
          auto placed = WaitPlacer(program, kernel, *role, choice, context).run();
          if (!placed) return std::nullopt;
          finished.body.push_back(ir::make(std::move(*placed), op.span()));
        }
        if (!choice.end("no loop of this kernel can leave its products under way"))
          return std::nullopt;
        return finished;
      });
  // Whether a kernel fits the machine shows only now.
  if (!out || !verify(*out, context.sink)) return std::nullopt;
  return out;
}

}  // namespace nautilus::matile
