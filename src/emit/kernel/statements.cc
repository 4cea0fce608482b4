// SPDX-License-Identifier: Apache-2.0
#include "emit/kernel/statements.h"

#include <utility>

#include "emit/convert.h"
#include "emit/kernel/shared_tiles.h"

namespace nautilus::emit {

using ir::Op;
using matile::Kind;

void StatementEmitter::block(const ir::Block& ops) {
  const auto locals = scope_.locals;
  const expr::Facts facts = scope_.facts;
  const auto early = std::exchange(scope_.registers.early, {});
  for (size_t k = 0; k < ops.size(); ++k) {
    if (ops[k].is<matile::Enter>()) early_reads(ops, k + 1);
    if (meet_at_once(ops, k))
      emit_groups(ops[++k].as<matile::Groups>(), scope_.registers, meeting_of_groups(true), out_);
    else
      statement(ops[k]);
  }
  scope_.locals = locals;
  scope_.facts = facts;
  scope_.registers.early = early;
}

void StatementEmitter::statement(const Op& op) {
  switch (matile::kind(op)) {
    case Kind::Tile:
      return tile(op.as<matile::Tile>());
    case Kind::Let:
      return let(op.as<matile::Let>());
    case Kind::Each:
      return each(op.as<matile::Each>());
    case Kind::Loop:
      return loop(op.as<matile::Loop>());
    case Kind::Unroll:
      return unroll(op.as<matile::Unroll>());
    case Kind::If: {
      const auto& branch = op.as<matile::If>();
      out_.open("if ({}) {{", scope_.text(branch.condition));
      block(branch.body);
      return out_.close();
    }
    case Kind::Fill:
      return rings_.fill(op.as<matile::Fill>());
    case Kind::Get:
      return rings_.get(op.as<matile::Get>().ring);
    case Kind::Release:
      return rings_.release(op.as<matile::Release>().ring);
    case Kind::Skip:
      return out_.line("{}.skip(lane);", identifier(op.as<matile::Skip>().ring.str()));
    case Kind::Jump: {
      const auto& jump = op.as<matile::Jump>();
      return out_.line("{}.jump({});", identifier(jump.ring.str()), scope_.text(jump.slots));
    }
    case Kind::Enter:
      return out_.line("{}.enter();", identifier(op.as<matile::Enter>().turn.str()));
    case Kind::Leave:
      return out_.line("{}.leave();", identifier(op.as<matile::Leave>().turn.str()));
    case Kind::Dot:
      return products_.dot(op.as<matile::Dot>());
    case Kind::WarpDot:
      return products_.warp_dot(op.as<matile::WarpDot>());
    case Kind::Take:
      return emit_take(op.as<matile::Take>(), scope_);
    case Kind::Wait:
      return products_.wait(op.as<matile::Wait>());
    case Kind::Set:
      return emit_set(op.as<matile::Set>(), scope_.registers, out_);
    case Kind::Fold:
      return emit_fold(op.as<matile::Fold>(), scope_.registers, out_);
    case Kind::Lanes:
      return emit_lanes(op.as<matile::Lanes>(), scope_.registers, out_);
    case Kind::Shares:
      return emit_shares(op.as<matile::Shares>(), scope_.registers, out_);
    case Kind::Warps:
      return emit_warps(op.as<matile::Warps>(), scope_.registers, meeting(), out_);
    case Kind::Groups:
      return emit_groups(op.as<matile::Groups>(), scope_.registers, meeting_of_groups(false), out_);
    case Kind::Ctas:
      return emit_ctas(op.as<matile::Ctas>(), scope_.registers, meeting_of_ctas(), out_);
    case Kind::Convert:
      return emit_convert(op.as<matile::Convert>(), scope_.registers, meeting(), out_);
    case Kind::Load:
      return emit_load(op.as<matile::Load>(), scope_.registers, out_);
    case Kind::Prefetch:
      return prefetch(op.as<matile::Prefetch>());
    case Kind::Forget:
      return out_.line("forget({});", identifier(op.as<matile::Forget>().tile.str()));
    case Kind::Vote:
      emit_vote(op.as<matile::Vote>(), scope_.registers, out_);
      return scope_.define(op.as<matile::Vote>().name);
    case Kind::Put:
      return emit_put(op.as<matile::Put>(), scope_.registers, out_);
    case Kind::Ticket:
      return ticket(op.as<matile::Ticket>());
    case Kind::Store:
      return emit_store(op.as<matile::Store>(), scope_);
    default:
      NAUT_CHECK(false, "{} inside a role", op.info().name);
  }
}

void StatementEmitter::early_reads(const ir::Block& ops, size_t from) {
  for (size_t k = from; k < ops.size() && !ops[k].is<matile::Let>(); ++k) {
    if (const auto* set = ops[k].get<matile::Set>()) emit_early_reads(*set, scope_.registers, out_);
  }
}

bool StatementEmitter::meet_at_once(const ir::Block& ops, size_t k) {
  const auto* warps = ops[k].get<matile::Warps>();
  const auto* groups = k + 1 < ops.size() ? ops[k + 1].get<matile::Groups>() : nullptr;
  return warps && groups && warps->tile == groups->tile && warps->reducer == groups->reducer;
}

Meeting StatementEmitter::meeting() const {
  const int bytes = scope_.role->scratch_bytes;
  return {fmt::format("smem + {}{}", scope_.role->scratch,
                      scope_.role->groups() > 1
                          ? fmt::format(" + {} * {}", scope_.group_text(), 2 * bytes)
                          : ""),
          bytes, "warps_at",
          fmt::format("{}{}", scope_.role->sync,
                      scope_.role->op->index ? " + " + scope_.group_text() : "")};
}

GroupMeeting StatementEmitter::meeting_of_groups(bool are_warps_apart) const {
  return {{fmt::format("smem + {}", scope_.role->meeting), scope_.role->meeting_bytes, "groups_at",
           fmt::format("{}", scope_.role->meeting_sync)},
          scope_.role->groups(),
          scope_.group_text(),
          are_warps_apart};
}

CtaMeeting StatementEmitter::meeting_of_ctas() const {
  return {fmt::format("smem + {}", scope_.role->cluster_meeting),
          scope_.role->cluster_meeting_bytes, "ctas_at", scope_.resources.cluster, scope_.rank()};
}

void StatementEmitter::tile(const matile::Tile& op) {
  const TileText tile{&op, matile::layout_of(op)};
  out_.line("{} {}[{}];", register_type(tile), identifier(op.name.str()), array_length(tile));
  scope_.registers.tiles.emplace(op.name.str(), tile);
}

void StatementEmitter::let(const matile::Let& op) {
  const std::string value = scope_.text(op.value);
  scope_.define(op.name);
  scope_.know(scope_.facts, op.name, op.value);
  out_.line("const {} {} = {};",
            expr::is_float(op.value.dtype())        ? "float"
            : op.value.dtype() == expr::DType::Bool ? "bool"
                                                    : "int",
            identifier(op.name.str()), value);
}

void StatementEmitter::each(const matile::Each& op) {
  const auto& tiles = *scope_.resources.tiles_of(op.tiles);
  const std::string t = identifier(op.var.str());
  const std::string count = scope_.text(tiles.op->count);
  scope_.define(op.var);
  scope_.facts.add_size(scope_.pool.index(op.var));
  if (op.lanes) {
    // All threads of the CTA come to its last tile: lanes that have none combine their values, too.
    const int64_t lanes = *op.lanes;
    const int64_t rows = 128 / lanes;
    out_.open(
        "for (int {0} = {1} * {2} + thread / {3}; {0} - thread / {3} < {4}; {0} += {1} * {5}) {{",
        t, rows, scope_.first_tile(), lanes, count, scope_.tile_step());
    block(op.body);
    return out_.close();
  }
  if (tiles.op->source == matile::TileSource::Static) {
    const int64_t by = op.alternate.value_or(1);
    const std::string step = scope_.resources.cluster > 1 && by > 1
                                 ? fmt::format("({})", scope_.tile_step())
                                 : scope_.tile_step();
    out_.open("for (int {0} = {4}{1}; {0} < {2}; {0} += {3}{5}) {{", t,
              by > 1 ? fmt::format(" + {} * {}", scope_.group_text(), step) : "", count,
              by > 1 ? fmt::format("{} * ", by) : "", scope_.first_tile(), step);
    block(op.body);
    return out_.close();
  }
  const std::string ring = identifier(op.tiles.str());
  out_.line("int {} = block_index();", t);
  out_.open("while ({} < {}) {{", t, count);
  if (tiles.fetcher == scope_.role->op) {
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
    out_.line("{} = {};", t, scope_.role->is_compute() ? "uniform(" + value + ")" : value);
    out_.line("{}.release(0, lane);", ring);
    out_.line("{}.advance();", ring);
  }
  out_.close();
}

void StatementEmitter::loop(const matile::Loop& op) {
  const std::string v = identifier(op.var.str());
  const bool is_up = op.direction == matile::Direction::Up;
  const std::string from = scope_.text(op.from);
  const std::string to = scope_.text(op.to);
  scope_.define(op.var);
  scope_.know(scope_.facts, op.var, is_up ? op.from : op.to);
  out_.open("NO_UNROLL for (int {0} = {1}; {0} {2} {3}; {4}{0}) {{", v, from,
            is_up ? "<" : ">=", to, is_up ? "++" : "--");
  const RingEmitter::Held held = rings_.held();
  block(op.body);
  rings_.set_held(held);
  out_.close();
}

void StatementEmitter::unroll(const matile::Unroll& op) {
  for (const ir::Axis& a : op.axes) {
    scope_.define(a.name);
    scope_.facts.add_size(scope_.pool.index(a.name));
    scope_.registers.unrolled[std::string(a.name.str())] = static_cast<int>(a.extent.integer());
    out_.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", identifier(a.name.str()),
              a.extent.integer());
  }
  block(op.body);
  for (const ir::Axis& a : op.axes) {
    scope_.registers.unrolled.erase(std::string(a.name.str()));
    out_.close();
  }
}

void StatementEmitter::prefetch(const matile::Prefetch& op) {
  const std::string tensor(op.value.name().str());
  const GlobalTensor& global = scope_.globals.find(tensor)->second;
  scope_.vectors.emplace(tensor);  // the plan looks at its alignment
  std::string at;
  for (size_t k = 0; k + 1 < op.value.args().size(); ++k)
    at += (at.empty() ? "" : " + ") + global.step(scope_.text(op.value[k]), k);
  const std::string condition =
      op.condition ? fmt::format(" && ({})", scope_.text(op.condition)) : "";
  out_.line("if (thread % 128 == 0{}) prefetch_cache(p.{}, {}, (u64)({}) * {});", condition,
            identifier(tensor), at.empty() ? "0" : at, scope_.text(op.count),
            expr::bytes(global.type.dtype));
}

void StatementEmitter::ticket(const matile::Ticket& op) {
  const std::string name = identifier(op.name.str());
  const std::string slot = fmt::format("smem + {} + 4 * group", scope_.resources.tickets);
  const std::string sync =
      fmt::format("bar_sync({} + {}, 128);", scope_.role->sync, scope_.group_text());
  out_.line("global_fence();");
  out_.line("{}", sync);
  out_.open("if (leader) {{");
  out_.line("int* const counter = p.{} + {};", identifier(op.counter.str()), scope_.text(op.index));
  out_.line("const bool is_last = global_add(counter, 1) == {} - 1;", scope_.text(op.count));
  out_.line("if (is_last) global_set(counter, 0);");
  out_.line("shared_store_i32({}, is_last);", slot);
  out_.close();
  out_.line("{}", sync);
  out_.line("const bool {} = uniform(shared_load_i32({})) != 0;", name, slot);
  out_.line("if ({}) global_fence();", name);
  scope_.define(op.name);
}

}  // namespace nautilus::emit
