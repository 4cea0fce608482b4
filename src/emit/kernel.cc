// SPDX-License-Identifier: Apache-2.0
// The kernel around the register work: parameters, barriers, roles, loops.
#include <algorithm>
#include <utility>

#include "emit/convert.h"
#include "emit/kernel_emitter.h"
#include "emit/launch_order.h"
#include "emit/points.h"
#include "estimate/registers.h"
#include "ir/decl.h"
#include "target/target.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using ir::Op;
using matile::Kind;
using matile::RingInfo;
using matile::RoleInfo;

}  // namespace

KernelText KernelEmitter::run() {
  KernelText text;
  text.name = kernel_identifier(kernel_.name.str());
  text.threads = r_.threads;
  text.shared_bytes = r_.shared_bytes;
  text.cluster = r_.cluster;
  globals_ = collect_params(program_, kernel_, text);
  for (const Op& op : program_.body) {
    if (const auto* dim = op.get<ir::Dim>()) base_facts_.add_size(pool_.index(dim->name));
    if (const auto* fact = op.get<ir::Fact>()) {
      base_facts_.assume(fact->condition);
      expr::assume_divisor(fact->condition, divisors_);
    }
    if (const auto* let = op.get<matile::Let>()) know(base_facts_, let->name, let->value);
  }
  const LaunchOrder order = launch_order(program_, kernel_);
  text.may_begin_early = order.is_behind;
  header(text, order.is_followed);
  roles();
  // Nobody leaves while others may still arrive at its barriers.
  if (r_.cluster > 1) out_.line("sync_cluster();");
  out_.close();
  text.body = params_struct(text, globals_) + out_.take();
  text.instructions = instructions_.text();
  text.vectors.assign(vectors_.begin(), vectors_.end());
  return text;
}

// A variable that is known not to be negative divides as in C++.
void KernelEmitter::know(expr::Facts& facts, ir::Name name, Expr value) {
  if (value.dtype() != expr::DType::I64) return;
  const auto poly = expr::Poly::of(value);
  if (poly && facts.is_nonnegative(*poly)) facts.add_size(pool_.index(name));
}

void KernelEmitter::header(const KernelText& text, bool is_followed) {
  describe();
  const int ctas = ctas_beside();
  if (r_.cluster > 1)
    out_.open("KERNEL_CLUSTER({}, {}, {}) {{", text.name, text.threads, r_.cluster);
  else if (ctas > 1)
    out_.open("KERNEL_MIN_CTAS({}, {}, {}) {{", text.name, text.threads, ctas);
  else
    out_.open("KERNEL({}, {}) {{", text.name, text.threads);
  out_.line("SHARED_BASE(smem);");
  out_.line("const int thread = thread_index();");
  out_.line(
      "const int group = uniform(thread / 128), warp = uniform(thread / 32) % 4, lane = thread % "
      "32;");
  const bool has_barriers =
      !r_.rings.empty() || std::any_of(r_.tiles.begin(), r_.tiles.end(), [](const auto& t) {
        return t.op->source == matile::TileSource::Dynamic;
      });
  if (is_followed) out_.line("let_next_kernel_begin();");
  if (!has_barriers) {
    if (text.may_begin_early) out_.line("wait_for_kernels_in_front();");
    return;
  }
  out_.open("if (thread == 0) {{");
  for (const RingInfo& ring : r_.rings) {
    for (int c = 0; c < ring.copies; ++c)
      out_.line("{}::init(smem + {}, {});", ring_type(ring),
                ring.barriers + c * ring.barrier_bytes(), ring.readers);
  }
  for (const auto& tiles : r_.tiles) {
    if (tiles.op->source == matile::TileSource::Dynamic)
      out_.line("Ring<2>::init(smem + {}, {});", tiles.barriers, tiles.readers);
  }
  out_.line("mbar_init_fence();");
  out_.close();
  if (text.may_begin_early) out_.line("wait_for_kernels_in_front();");
  out_.line("{}();", r_.cluster > 1 ? "sync_cluster" : "sync_cta");
}

// The kernel's own decision; without it and without loading roles registers do not move between
// groups: what the roles ask for decides how many CTAs share a multiprocessor.
int KernelEmitter::ctas_beside() const {
  if (kernel_.resident) return r_.resident;
  const target::Limits& limits = r_.target->limits;
  int64_t regs = 0;
  for (const RoleInfo& role : r_.roles) {
    if (!role.is_compute() || !role.op->regs) return 1;
    regs = std::max(regs, *role.op->regs);
  }
  if (regs == 0) return 1;
  return static_cast<int>(estimate::ctas_that_fit(r_.threads, regs, limits));
}

void KernelEmitter::describe() {
  out_.line("// {} threads, {} bytes of shared memory", r_.threads, r_.shared_bytes);
  if (r_.cluster > 1) out_.line("// clusters of {} CTAs", r_.cluster);
  for (const RingInfo& ring : r_.rings)
    out_.line("// ring {}: {} slots of {} bytes{}, filled by {}, read by {} warps{}",
              ring.op->name.str(), ring.slots(), ring.slot_bytes,
              ring.copies > 1 ? fmt::format(" for each of {} groups", ring.copies) : "",
              ring.filler ? ring.filler->name.str() : "nobody", ring.readers,
              ring.ctas > 1 ? fmt::format(" of {} CTAs", ring.ctas) : "");
  for (const auto& turn : r_.turns)
    out_.line("// turn {}: {} groups issue matrix work one after the other", turn.op->name.str(),
              turn.groups);
  for (const auto& tiles : r_.tiles)
    out_.line("// tiles {}: {}", tiles.op->name.str(),
              tiles.op->source == matile::TileSource::Dynamic ? "next free CTA, from a counter"
              : r_.cluster > 1                                ? "each for a cluster"
                                                              : "every grid-th");
}

void KernelEmitter::roles() {
  std::vector<const RoleInfo*> loaders;
  std::vector<const RoleInfo*> computes;
  for (const RoleInfo& role : r_.roles) (role.is_compute() ? computes : loaders).push_back(&role);
  bool is_first = true;
  if (!loaders.empty()) {
    out_.open("if (group == 0) {{");
    if (r_.moves_registers()) out_.line("registers_down<{}>();", *loaders[0]->op->regs);
    for (const RoleInfo* role : loaders) {
      out_.open("if (warp == {} && lane == 0) {{", *role->op->count);
      role_body(*role);
      out_.close();
    }
    is_first = false;
  }
  for (const RoleInfo* role : computes) {
    const bool is_last = role == computes.back();
    const std::string condition =
        fmt::format("if (group < {}) {{", role->first_group + role->groups());
    if (!is_first) {
      out_.close(is_last ? "} else {" : "} else " + condition);
      out_.indent(2);
    } else {
      out_.open("{}", is_last ? "{" : condition);
    }
    is_first = false;
    if (r_.moves_registers()) out_.line("registers_up<{}>();", *role->op->regs);
    role_body(*role);
  }
  out_.close();
}

void KernelEmitter::role_body(const RoleInfo& role) {
  role_ = &role;
  scope_ = RegisterScope{};
  facts_ = base_facts_;
  locals_.clear();
  descriptors_.clear();
  stage_used_ = false;
  scope_.globals = &globals_;
  scope_.facts = &facts_;
  scope_.pool = &pool_;
  scope_.variable = [this](Expr v) { return variable(v); };
  scope_.has_coarse_functions =
      ir::allows_coarse_functions(program_, matile::output_dtypes(program_));
  scope_.divisors = divisors_;
  scope_.vectors = &vectors_;
  out_.line("ROLE(\"{}\");", role.op->name.str());
  for (const Op& op : kernel_.body) {
    if (const auto* c = op.get<matile::Cta>()) cta(*c);
  }
  if (kernel_.rank) {
    define(kernel_.rank);
    facts_.add_size(pool_.index(kernel_.rank));
    out_.line("const int {} = {};", identifier(kernel_.rank.str()), rank());
  }
  if (role.op->index) {
    define(role.op->index);
    facts_.add_axis(pool_.index(role.op->index), pool_.integer(role.groups()));
    out_.line("const int {} = group - {};", identifier(role.op->index.str()), role.first_group);
  }
  if (role.is_compute()) out_.line("const bool leader = thread % 128 == 0;");
  rings();
  turns();
  maps_and_descriptors();
  stages();
  if (role.scratch_bytes) out_.line("int warps_at = 0;");
  if (role.meeting_bytes) out_.line("int groups_at = 0;");
  tiles_cursor();
  block(role.op->body);
  if (stage_used_) out_.line("if (leader) tma_wait_read<0>();");
}

std::string KernelEmitter::group_text() const {
  return role_->op->index ? identifier(role_->op->index.str()) : "0";
}

std::string KernelEmitter::ring_type(const RingInfo& ring) {
  return ring.ctas > 1 ? fmt::format("Ring<{}, {}>", ring.slots(), ring.ctas)
                       : fmt::format("Ring<{}>", ring.slots());
}

void KernelEmitter::rings() {
  for (const RingInfo& ring : r_.rings) {
    const ir::Name name = ring.op->name;
    if (!uses([&](const Op& op) {
          const auto* f = op.get<matile::Fill>();
          const auto* g = op.get<matile::Get>();
          const auto* s = op.get<matile::Skip>();
          const auto* j = op.get<matile::Jump>();
          return (j && j->ring == name) || (f && f->ring == name) || (g && g->ring == name) ||
                 (s && s->ring == name);
        }))
      continue;
    const bool is_own = ring.copies > 1 && role_->is_compute();
    out_.line("{} {}(smem + {}{});", ring_type(ring), identifier(name.str()), ring.barriers,
              is_own ? fmt::format(" + {} * {}", group_text(), ring.barrier_bytes()) : "");
  }
}

void KernelEmitter::turns() {
  for (const auto& turn : r_.turns) {
    if (turn.op->role == role_->op->name)
      out_.line("Turn<{}> {}({}, {});", turn.groups, identifier(turn.op->name.str()), turn.barrier,
                group_text());
  }
}

void KernelEmitter::stages() {
  for (const auto& stage : r_.stages) {
    if (stage.op->role != role_->op->name) continue;
    stage_used_ = uses([](const Op& op) { return op.is<matile::Store>(); });
    if (stage.buffers() > 1) out_.line("int {}_at = 0;", identifier(stage.op->name.str()));
  }
}

void KernelEmitter::tiles_cursor() {
  for (const auto& tiles : r_.tiles) {
    if (tiles.op->source == matile::TileSource::Dynamic && uses([&](const Op& op) {
          const auto* e = op.get<matile::Each>();
          return e && e->tiles == tiles.op->name;
        }))
      out_.line("Ring<2> {}(smem + {});", identifier(tiles.op->name.str()), tiles.barriers);
  }
}

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

Meeting KernelEmitter::meeting() const {
  const int bytes = role_->scratch_bytes;
  return {
      fmt::format("smem + {}{}", role_->scratch,
                  role_->groups() > 1 ? fmt::format(" + {} * {}", group_text(), 2 * bytes) : ""),
      bytes, "warps_at",
      fmt::format("{}{}", role_->sync, role_->op->index ? " + " + group_text() : "")};
}

GroupMeeting KernelEmitter::meeting_of_groups(bool are_warps_apart) const {
  return {{fmt::format("smem + {}", role_->meeting), role_->meeting_bytes, "groups_at",
           fmt::format("{}", role_->meeting_sync)},
          role_->groups(),
          group_text(),
          are_warps_apart};
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
std::vector<KernelText> emit_kernels(const ir::Program& program, expr::ExprPool& pool) {
  std::vector<KernelText> out;
  for (const Op& op : program.body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    const bool is_scalar_code = !kernel->body.empty() && kernel->body[0].is<matile::Points>();
    out.push_back(is_scalar_code ? emit_points(program, *kernel, pool)
                                 : KernelEmitter(program, *kernel, pool).run());
  }
  return out;
}

}  // namespace nautilus::emit
