// SPDX-License-Identifier: Apache-2.0
// Statements of a role: blocks, loops, scalars; what is more than a line has a file of its own.
#include <utility>

#include "emit/convert.h"
#include "emit/kernel_emitter.h"

namespace nautilus::emit {

using expr::Expr;
using ir::Op;
using matile::Kind;

std::string KernelEmitter::variable(Expr var) const {
  const std::string name = identifier(var.name().str());
  return locals_.contains(var.name().str()) ? name : "p." + name;
}

std::string KernelEmitter::text(Expr e) const {
  ExpressionNames names;
  names.variable = [this](Expr v) { return variable(v); };
  // A number that is the same for all threads that read it.
  names.read = [this](Expr read) {
    const auto global = globals_.find(read.name().str());
    NAUT_CHECK(global != globals_.end(), "a scalar reads `{}`", read.name().str());
    std::string at;
    for (size_t k = 0; k < read.args().size(); ++k)
      at += (at.empty() ? "" : " + ") + global->second.step(text(read[k]), k);
    return fmt::format("load_{}(p.{}, {})", expr::name(read.dtype()), identifier(read.name().str()),
                       at.empty() ? "0" : at);
  };
  names.facts = &facts_;
  return expression(e, names);
}

std::string KernelEmitter::list(const ir::Exprs& exprs) const {
  std::string out;
  for (Expr e : exprs) out += ", " + text(e);
  return out;
}

// Warps that meet right before the groups do: all of them can at one barrier.
bool KernelEmitter::meet_at_once(const ir::Block& ops, size_t k) {
  const auto* warps = ops[k].get<matile::Warps>();
  const auto* groups = k + 1 < ops.size() ? ops[k + 1].get<matile::Groups>() : nullptr;
  return warps && groups && warps->tile == groups->tile && warps->reducer == groups->reducer;
}

// The names of a block, and what is known of them, end with it.
void KernelEmitter::block(const ir::Block& ops) {
  const auto locals = locals_;
  const expr::Facts facts = facts_;
  const auto early = std::exchange(scope_.early, {});
  for (size_t k = 0; k < ops.size(); ++k) {
    if (ops[k].is<matile::Enter>()) early_reads(ops, k + 1);
    if (meet_at_once(ops, k))
      emit_groups(ops[++k].as<matile::Groups>(), scope_, meeting_of_groups(true), out_);
    else
      statement(ops[k]);
  }
  locals_ = locals;
  facts_ = facts;
  scope_.early = early;
}

// Loads before a turn, which nobody waits for: between them a group would hold it for as long
// as memory takes.
void KernelEmitter::early_reads(const ir::Block& ops, size_t from) {
  for (size_t k = from; k < ops.size() && !ops[k].is<matile::Let>(); ++k) {
    if (const auto* set = ops[k].get<matile::Set>()) emit_early_reads(*set, scope_, out_);
  }
}

void KernelEmitter::statement(const Op& op) {
  switch (matile::kind(op)) {
    case Kind::Tile:
      return tile(op.as<matile::Tile>());
    case Kind::Let: {
      const auto& let = op.as<matile::Let>();
      const std::string value = text(let.value);
      define(let.name);
      know(facts_, let.name, let.value);
      return out_.line("const {} {} = {};",
                       expr::is_float(let.value.dtype())        ? "float"
                       : let.value.dtype() == expr::DType::Bool ? "bool"
                                                                : "int",
                       identifier(let.name.str()), value);
    }
    case Kind::Each:
      return each(op.as<matile::Each>());
    case Kind::Loop:
      return loop(op.as<matile::Loop>());
    case Kind::Unroll:
      return unroll(op.as<matile::Unroll>());
    case Kind::If: {
      const auto& branch = op.as<matile::If>();
      out_.open("if ({}) {{", text(branch.condition));
      block(branch.body);
      return out_.close();
    }
    case Kind::Fill:
      return fill(op.as<matile::Fill>());
    case Kind::Get:
      return get(op.as<matile::Get>().ring);
    case Kind::Release:
      return release(op.as<matile::Release>().ring);
    case Kind::Skip:
      return out_.line("{}.skip(lane);", identifier(op.as<matile::Skip>().ring.str()));
    case Kind::Jump: {
      const auto& jump = op.as<matile::Jump>();
      return out_.line("{}.jump({});", identifier(jump.ring.str()), text(jump.slots));
    }
    case Kind::Enter:
      return out_.line("{}.enter();", identifier(op.as<matile::Enter>().turn.str()));
    case Kind::Leave:
      return out_.line("{}.leave();", identifier(op.as<matile::Leave>().turn.str()));
    case Kind::Dot:
      return dot(op.as<matile::Dot>());
    case Kind::WarpDot:
      return warp_dot(op.as<matile::WarpDot>());
    case Kind::Take:
      return take(op.as<matile::Take>());
    case Kind::Wait:
      return wait(op.as<matile::Wait>());
    case Kind::Set:
      return emit_set(op.as<matile::Set>(), scope_, out_);
    case Kind::Fold:
      return emit_fold(op.as<matile::Fold>(), scope_, out_);
    case Kind::Lanes:
      return emit_lanes(op.as<matile::Lanes>(), scope_, out_);
    case Kind::Shares:
      return emit_shares(op.as<matile::Shares>(), scope_, out_);
    case Kind::Warps:
      return emit_warps(op.as<matile::Warps>(), scope_, meeting(), out_);
    case Kind::Groups:
      return emit_groups(op.as<matile::Groups>(), scope_, meeting_of_groups(false), out_);
    case Kind::Convert:
      return emit_convert(op.as<matile::Convert>(), scope_, meeting(), out_);
    case Kind::Load:
      return emit_load(op.as<matile::Load>(), scope_, out_);
    case Kind::Prefetch:
      return prefetch(op.as<matile::Prefetch>());
    case Kind::Forget:
      return out_.line("forget({});", identifier(op.as<matile::Forget>().tile.str()));
    case Kind::Vote:
      emit_vote(op.as<matile::Vote>(), scope_, out_);
      return define(op.as<matile::Vote>().name);
    case Kind::Put:
      return emit_put(op.as<matile::Put>(), scope_, out_);
    case Kind::Ticket:
      return ticket(op.as<matile::Ticket>());
    case Kind::Store:
      return store(op.as<matile::Store>());
    default:
      NAUT_CHECK(false, "{} inside a role", op.info().name);
  }
}

void KernelEmitter::cta(const matile::Cta& op) {
  for (ir::Name name : {op.index, op.count}) {
    define(name);
    facts_.add_size(pool_.index(name));
  }
  out_.line("const int {} = {}, {} = {};", identifier(op.index.str()), first_tile(),
            identifier(op.count.str()), tile_step());
}

std::string KernelEmitter::per_cluster(std::string_view ctas) const {
  return r_.cluster > 1 ? fmt::format("{} / {}", ctas, r_.cluster) : std::string(ctas);
}

void KernelEmitter::tile(const matile::Tile& op) {
  const TileText tile{&op, matile::layout_of(op)};
  out_.line("{} {}[{}];", expr::bytes(op.type.dtype) == 2 ? "u32" : "float",
            identifier(op.name.str()), array_length(tile));
  scope_.tiles.emplace(op.name.str(), tile);
}

void KernelEmitter::each(const matile::Each& op) {
  const auto& tiles = *r_.tiles_of(op.tiles);
  const std::string t = identifier(op.var.str());
  const std::string count = text(tiles.op->count);
  define(op.var);
  facts_.add_size(pool_.index(op.var));
  if (tiles.op->source == matile::TileSource::Static) {
    const int64_t by = op.alternate.value_or(1);
    const std::string step =
        r_.cluster > 1 && by > 1 ? fmt::format("({})", tile_step()) : tile_step();
    out_.open("for (int {0} = {4}{1}; {0} < {2}; {0} += {3}{5}) {{", t,
              by > 1 ? fmt::format(" + {} * {}", group_text(), step) : "", count,
              by > 1 ? fmt::format("{} * ", by) : "", first_tile(), step);
    block(op.body);
    return out_.close();
  }
  const std::string ring = identifier(op.tiles.str());
  out_.line("int {} = block_index();", t);
  out_.open("while ({} < {}) {{", t, count);
  if (tiles.fetcher == role_->op) {
    const std::string counter = "p." + identifier(tiles.op->counter.str());
    out_.line("const int {}_next = block_count() + global_add({}, 1);", t, counter);
    // The last fetch of the launch puts the counter back to zero.
    out_.line("if ({}_next == {} - 1 + block_count()) global_set({}, 0);", t, count, counter);
    out_.line("{}.claim();", ring);
    out_.line("shared_store_i32(smem + {} + 4 * {}.slot, {}_next);", tiles.values, ring, t);
    out_.line("{}.publish();", ring);
    out_.line("{}.advance();", ring);
    block(op.body);
    out_.line("{} = {}_next;", t, t);
  } else {
    block(op.body);
    out_.line("{}.get();", ring);
    const std::string value =
        fmt::format("shared_load_i32(smem + {} + 4 * {}.slot)", tiles.values, ring);
    out_.line("{} = {};", t, role_->is_compute() ? "uniform(" + value + ")" : value);
    out_.line("{}.release(0, lane);", ring);
    out_.line("{}.advance();", ring);
  }
  out_.close();
}

void KernelEmitter::loop(const matile::Loop& op) {
  const std::string v = identifier(op.var.str());
  const bool is_up = op.direction == matile::Direction::Up;
  const std::string from = text(op.from);
  const std::string to = text(op.to);
  define(op.var);
  know(facts_, op.var, is_up ? op.from : op.to);
  out_.open("NO_UNROLL for (int {0} = {1}; {0} {2} {3}; {4}{0}) {{", v, from,
            is_up ? "<" : ">=", to, is_up ? "++" : "--");
  held_stack_.push_back(held_);
  block(op.body);
  held_ = held_stack_.back();
  held_stack_.pop_back();
  out_.close();
}

void KernelEmitter::unroll(const matile::Unroll& op) {
  for (const ir::Axis& a : op.axes) {
    define(a.name);
    facts_.add_size(pool_.index(a.name));
    scope_.unrolled[std::string(a.name.str())] = static_cast<int>(a.extent.integer());
    out_.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", identifier(a.name.str()),
              a.extent.integer());
  }
  block(op.body);
  for (const ir::Axis& a : op.axes) {
    scope_.unrolled.erase(std::string(a.name.str()));
    out_.close();
  }
}

}  // namespace nautilus::emit
