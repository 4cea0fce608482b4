// SPDX-License-Identifier: Apache-2.0
// The kernel around the register work: parameters, barriers, roles, loops, rings and products.
#include <algorithm>

#include "emit/elementwise.h"
#include "emit/emit.h"
#include "emit/expression.h"
#include "emit/instructions.h"
#include "emit/params.h"
#include "emit/vector.h"
#include "emit/writer.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/walk.h"
#include "layout/descriptor.h"
#include "layout/stmatrix.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using ir::Op;
using matile::Kind;
using matile::PartInfo;
using matile::Resources;
using matile::RingInfo;
using matile::RoleInfo;

constexpr int64_t kMaxCtas = 32;  // of one multiprocessor

class KernelEmitter {
 public:
  KernelEmitter(const ir::Program& program, const matile::Kernel& kernel, expr::ExprPool& pool)
      : program_(program), kernel_(kernel), pool_(pool), r_(matile::resources_of(kernel)) {}

  KernelText run() {
    KernelText text;
    text.name = identifier(kernel_.name.str());
    text.threads = r_.threads;
    text.shared_bytes = r_.shared_bytes;
    globals_ = collect_params(program_, kernel_, text);
    for (const Op& op : program_.body) {
      if (const auto* dim = op.get<ir::Dim>()) base_facts_.add_size(pool_.index(dim->name));
      if (const auto* fact = op.get<ir::Fact>()) {
        base_facts_.assume(fact->condition);
        assume_divisor(fact->condition);
      }
      if (const auto* let = op.get<matile::Let>()) know(base_facts_, let->name, let->value);
    }
    header(text);
    roles();
    out_.close();
    text.body = params_struct(text, globals_) + out_.take();
    text.instructions = instructions_.text();
    text.vectors.assign(vectors_.begin(), vectors_.end());
    return text;
  }

 private:
  // `N % 8 == 0`
  void assume_divisor(Expr condition) {
    if (condition.op() != expr::Op::Eq || !condition[1].is_int(0)) return;
    const Expr mod = condition[0];
    if (mod.op() != expr::Op::Mod || mod[0].op() != expr::Op::Var || !mod[1].is_const()) return;
    divisors_.insert_or_assign(std::string(mod[0].name().str()), mod[1].integer());
  }

  // A variable that is known not to be negative divides as in C++.
  void know(expr::Facts& facts, ir::Name name, Expr value) {
    if (value.dtype() != expr::DType::I64) return;
    const auto poly = expr::Poly::of(value);
    if (poly && facts.is_nonnegative(*poly)) facts.add_size(pool_.index(name));
  }

  // --- structure ----------------------------------------------------------------------------

  void header(const KernelText& text) {
    describe();
    const int ctas = ctas_beside();
    if (ctas > 1)
      out_.open("KERNEL_BESIDE({}, {}, {}) {{", text.name, text.threads, ctas);
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
    if (!has_barriers) return;
    out_.open("if (thread == 0) {{");
    for (const RingInfo& ring : r_.rings) {
      for (int c = 0; c < ring.copies; ++c)
        out_.line("Ring<{}>::init(smem + {}, {});", ring.slots(),
                  ring.barriers + c * ring.barrier_bytes(), ring.readers);
    }
    for (const auto& tiles : r_.tiles) {
      if (tiles.op->source == matile::TileSource::Dynamic)
        out_.line("Ring<2>::init(smem + {}, {});", tiles.barriers, tiles.readers);
    }
    out_.line("mbar_init_fence();");
    out_.close();
    out_.line("sync_cta();");
  }

  // Without loading roles registers do not move between groups: what the roles ask for decides how
  // many CTAs share a multiprocessor (65536 registers, given out to warps in units of 8 per
  // thread).
  int ctas_beside() const {
    int64_t regs = 0;
    for (const RoleInfo& role : r_.roles) {
      if (!role.is_compute() || !role.op->regs) return 1;
      regs = std::max(regs, (*role.op->regs + 7) / 8 * 8);
    }
    if (regs == 0) return 1;
    return static_cast<int>(
        std::min<int64_t>({65536 / (regs * r_.threads), 2048 / r_.threads, kMaxCtas}));
  }

  void describe() {
    out_.line("// {} threads, {} bytes of shared memory", r_.threads, r_.shared_bytes);
    for (const RingInfo& ring : r_.rings)
      out_.line("// ring {}: {} slots of {} bytes{}, filled by {}, read by {} warps",
                ring.op->name.str(), ring.slots(), ring.slot_bytes,
                ring.copies > 1 ? fmt::format(" for each of {} groups", ring.copies) : "",
                ring.filler ? ring.filler->name.str() : "nobody", ring.readers);
    for (const auto& turn : r_.turns)
      out_.line("// turn {}: {} groups issue matrix work one after the other", turn.op->name.str(),
                turn.groups);
    for (const auto& tiles : r_.tiles)
      out_.line("// tiles {}: {}", tiles.op->name.str(),
                tiles.op->source == matile::TileSource::Dynamic ? "next free CTA, from a counter"
                                                                : "every grid-th");
  }

  void roles() {
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

  void role_body(const RoleInfo& role) {
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
    scope_.divisors = divisors_;
    scope_.vectors = &vectors_;
    out_.line("ROLE(\"{}\");", role.op->name.str());
    for (const Op& op : kernel_.body) {
      if (const auto* c = op.get<matile::Cta>()) cta(*c);
    }
    if (role.op->index) {
      define(role.op->index);
      facts_.add_size(pool_.index(role.op->index));
      out_.line("const int {} = group - {};", identifier(role.op->index.str()), role.first_group);
    }
    if (role.is_compute()) out_.line("const bool leader = thread % 128 == 0;");
    rings();
    turns();
    maps_and_descriptors();
    stages();
    if (role.scratch_bytes) out_.line("int warps_at = 0;");
    tiles_cursor();
    block(role.op->body);
    if (stage_used_) out_.line("if (leader) tma_wait_read<0>();");
  }

  bool uses(auto&& predicate) const {
    bool found = false;
    ir::for_each_op(role_->op->body, [&](const Op& op) { found |= predicate(op); });
    return found;
  }

  std::string group_text() const {
    return role_->op->index ? identifier(role_->op->index.str()) : "0";
  }

  void rings() {
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
      out_.line("Ring<{}> {}(smem + {}{});", ring.slots(), identifier(name.str()), ring.barriers,
                is_own ? fmt::format(" + {} * {}", group_text(), ring.barrier_bytes()) : "");
    }
  }

  void turns() {
    for (const auto& turn : r_.turns) {
      if (turn.op->role == role_->op->name)
        out_.line("Turn<{}> {}({}, {});", turn.groups, identifier(turn.op->name.str()),
                  turn.barrier, group_text());
    }
  }

  void stages() {
    for (const auto& stage : r_.stages) {
      if (stage.op->role != role_->op->name) continue;
      stage_used_ = uses([](const Op& op) { return op.is<matile::Store>(); });
      if (stage.buffers() > 1) out_.line("int {}_at = 0;", identifier(stage.op->name.str()));
    }
  }

  void tiles_cursor() {
    for (const auto& tiles : r_.tiles) {
      if (tiles.op->source == matile::TileSource::Dynamic && uses([&](const Op& op) {
            const auto* e = op.get<matile::Each>();
            return e && e->tiles == tiles.op->name;
          }))
        out_.line("Ring<2> {}(smem + {});", identifier(tiles.op->name.str()), tiles.barriers);
    }
  }

  // Maps that the role copies with are fetched early; operands of products get their descriptors.
  void maps_and_descriptors() {
    std::set<std::string> maps;
    ir::for_each_op(role_->op->body, [&](const Op& op) {
      if (const auto* c = op.get<matile::Copy>()) maps.emplace(c->map.str());
      if (const auto* d = op.get<matile::Dot>()) {
        descriptor(d->a, layout::Major::K, d->rows);
        descriptor(d->b, d->trans == matile::Trans::Yes ? layout::Major::K : layout::Major::MN, {});
      }
    });
    for (const std::string& m : maps) out_.line("tma_prefetch(&p.{});", identifier(m));
  }

  static layout::Operand operand(const PartInfo& part, layout::Major major) {
    return {.tile = part.tile, .major = major};
  }

  // The name of the variable that describes a part; declares it at first sight.
  std::string descriptor(ir::Name part_name, layout::Major major, Expr rows) {
    const auto [ring, part] = r_.part(part_name);
    if (!part) return "";  // a register tile
    const auto key = std::make_tuple(part_name, major, rows);
    for (const auto& [known, name] : descriptors_) {
      if (known == key) return name;
    }
    std::string name = identifier(part_name.str()) + "_desc";
    if (!descriptors_.empty()) {
      const auto clashes = std::count_if(descriptors_.begin(), descriptors_.end(),
                                         [&](auto& d) { return d.second.starts_with(name); });
      if (clashes > 0) name += fmt::format("{}", clashes + 1);
    }
    const layout::MatrixDescriptor d = layout::step_descriptor(operand(*part, major), 0);
    std::string address = fmt::format("smem + {}", ring->offset + part->offset);
    if (ring->copies > 1) address += fmt::format(" + {} * {}", group_text(), ring->copy_bytes());
    if (rows)
      address += fmt::format(" + ({}) * {}", text(rows), layout::span_bytes(part->tile.swizzle));
    out_.line("const u64 {} = matrix_descriptor({}, {}, {}, {});", name, address, d.leading,
              d.stride, layout::encode({.swizzle = part->tile.swizzle}) >> 62);
    descriptors_.emplace_back(key, name);
    return name;
  }

  // --- statements ---------------------------------------------------------------------------

  void define(ir::Name name) { locals_.emplace(name.str()); }

  std::string variable(Expr var) const {
    const std::string name = identifier(var.name().str());
    return locals_.contains(var.name().str()) ? name : "p." + name;
  }

  std::string text(Expr e) const {
    ExpressionNames names;
    names.variable = [this](Expr v) { return variable(v); };
    names.read = [](Expr read) -> std::string {
      NAUT_CHECK(false, "a scalar reads `{}`", read.name().str());
    };
    names.facts = &facts_;
    return expression(e, names);
  }

  std::string list(const ir::Exprs& exprs) const {
    std::string out;
    for (Expr e : exprs) out += ", " + text(e);
    return out;
  }

  // The names of a block, and what is known of them, end with it.
  void block(const ir::Block& ops) {
    const auto locals = locals_;
    const expr::Facts facts = facts_;
    for (const Op& op : ops) statement(op);
    locals_ = locals;
    facts_ = facts;
  }

  void statement(const Op& op) {
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
      case Kind::Warps:
        return emit_warps(op.as<matile::Warps>(), scope_, meeting(), out_);
      case Kind::Load:
        return emit_load(op.as<matile::Load>(), scope_, out_);
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

  void cta(const matile::Cta& op) {
    for (ir::Name name : {op.index, op.count}) {
      define(name);
      facts_.add_size(pool_.index(name));
    }
    out_.line("const int {} = block_index(), {} = block_count();", identifier(op.index.str()),
              identifier(op.count.str()));
  }

  Meeting meeting() const {
    const int bytes = role_->scratch_bytes;
    return {
        fmt::format("smem + {}{}", role_->scratch,
                    role_->groups() > 1 ? fmt::format(" + {} * {}", group_text(), 2 * bytes) : ""),
        bytes, "warps_at",
        fmt::format("{}{}", role_->sync, role_->op->index ? " + " + group_text() : "")};
  }

  void tile(const matile::Tile& op) {
    const TileText tile{&op, matile::layout_of(op)};
    out_.line("{} {}[{}];", expr::bytes(op.type.dtype) == 2 ? "u32" : "float",
              identifier(op.name.str()), array_length(tile));
    scope_.tiles.emplace(op.name.str(), tile);
  }

  void each(const matile::Each& op) {
    const auto& tiles = *r_.tiles_of(op.tiles);
    const std::string t = identifier(op.var.str());
    const std::string count = text(tiles.op->count);
    define(op.var);
    facts_.add_size(pool_.index(op.var));
    if (tiles.op->source == matile::TileSource::Static) {
      const int64_t by = op.alternate.value_or(1);
      out_.open("for (int {0} = block_index(){1}; {0} < {2}; {0} += {3}block_count()) {{", t,
                by > 1 ? fmt::format(" + {} * block_count()", group_text()) : "", count,
                by > 1 ? fmt::format("{} * ", by) : "");
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

  void loop(const matile::Loop& op) {
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

  void unroll(const matile::Unroll& op) {
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

  void fill(const matile::Fill& op) {
    const RingInfo& ring = *r_.ring(op.ring);
    const std::string name = identifier(op.ring.str());
    int bytes = 0;
    for (const PartInfo& part : ring.parts) bytes += part.tile.bytes();
    std::string copy;
    if (op.group) {
      const std::string g = identifier(op.group.str());
      define(op.group);
      facts_.add_size(pool_.index(op.group));
      out_.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", g, ring.copies);
      out_.line("const u32 full = {}.fill_copy({}, {});", name, g, bytes);
      copy = fmt::format(" + {} * {}", g, ring.copy_bytes());
    } else {
      out_.open("{{");
      out_.line("const u32 full = {}.fill({});", name, bytes);
    }
    for (const Op& inner : op.body) {
      const auto& c = inner.as<matile::Copy>();
      const auto [owner, part] = r_.part(c.part);
      const std::string panel =
          c.panel ? fmt::format(" + {}", *c.panel * part->tile.panel_bytes()) : "";
      out_.line("tma_load({}{}{}, &p.{}, full{});", slot_address(ring, *part, name), copy, panel,
                identifier(c.map.str()), list(c.at));
    }
    if (op.group) {
      out_.close();
      return out_.line("{}.advance();", name);
    }
    out_.line("{}.advance();", name);
    out_.close();
  }

  static std::string slot_address(const RingInfo& ring, const PartInfo& part,
                                  const std::string& name) {
    std::string out = fmt::format("smem + {}", ring.offset + part.offset);
    if (ring.slots() > 1) out += fmt::format(" + {}.slot * {}", name, ring.slot_bytes);
    return out;
  }

  void get(ir::Name ring) {
    // The cursor stands on the newest slot held, or on the next one if none is.
    if (held_[std::string(ring.str())]++ > 0) out_.line("{}.advance();", identifier(ring.str()));
    out_.line("{}.get();", identifier(ring.str()));
  }

  // The oldest slot held is `held - 1` gets behind the cursor.
  void release(ir::Name ring) {
    int& held = held_[std::string(ring.str())];
    const bool is_stage = std::any_of(r_.stages.begin(), r_.stages.end(),
                                      [&](const auto& s) { return s.op->ring == ring; });
    if (is_stage) out_.line("if (leader) tma_wait_read<0>();");
    out_.line("{}.release({}, lane);", identifier(ring.str()), held - 1);
    if (--held == 0) out_.line("{}.advance();", identifier(ring.str()));
  }

  static std::string stepped(std::string_view base, uint32_t units) {
    return units == 0 ? std::string(base) : fmt::format("descriptor_at({}, {})", base, units);
  }

  void dot(const matile::Dot& op) {
    const auto& acc = scope_.tiles.find(op.acc.str())->second;
    const std::vector<int> shape = matile::static_shape(acc.op->type);
    const auto [b_ring, b_part] = r_.part(op.b);
    const bool is_trans = op.trans == matile::Trans::Yes;
    const layout::Major b_major = is_trans ? layout::Major::K : layout::Major::MN;
    const layout::Operand b = operand(*b_part, b_major);
    const auto a_tile = scope_.tiles.find(op.a.str());
    const bool a_in_registers = a_tile != scope_.tiles.end();
    const std::string_view dtype = expr::name(b_part->op->type.dtype);
    const int n = shape[1];
    instructions_.products.emplace(dtype, n, a_in_registers);

    const auto at_slot = [&](ir::Name part_name, layout::Major major, Expr rows) {
      const auto [ring, part] = r_.part(part_name);
      std::string out = descriptor(part_name, major, rows);
      if (ring->slots() > 1)
        out = fmt::format("descriptor_at({}, {}.slot * {})", out, identifier(ring->op->name.str()),
                          ring->slot_bytes / 16);
      return out;
    };
    out_.line("wgmma_fence();");
    out_.open("{{  // {} {} {} . {}", op.acc.str(),
              op.mode == matile::DotMode::Init ? "=" : "+=", op.a.str(), op.b.str());
    if (!a_in_registers)
      out_.line("const u64 from_a = {};", at_slot(op.a, layout::Major::K, op.rows));
    out_.line("const u64 from_b = {};", at_slot(op.b, b_major, {}));
    const int blocks = shape[0] / 64;
    for (int k = 0; k < b.k_steps(); ++k) {
      for (int x = 0; x < blocks; ++x) {
        const char* mode = k == 0 && op.mode == matile::DotMode::Init ? "INIT" : "ADD";
        std::string a = fmt::format("{}, {}", identifier(op.a.str()), 4 * (k + x * b.k_steps()));
        if (!a_in_registers) {
          layout::Operand rows = operand(*r_.part(op.a).second, layout::Major::K);
          rows.first_mn = 64 * x;
          const auto first =
              layout::step_descriptor(operand(*r_.part(op.a).second, layout::Major::K), 0);
          const uint32_t shift = (layout::step_descriptor(rows, k).start - first.start) / 16;
          a = stepped("from_a", shift);
        }
        out_.line("wgmma_{}_n{}<{}, {}>({}, {}, {}, {});", dtype, n, mode, is_trans ? 0 : 1,
                  identifier(op.acc.str()), x * n / 2, a,
                  stepped("from_b", layout::step_advance(b, k)));
      }
    }
    out_.close();
    out_.line("wgmma_commit();");
    if (a_in_registers) a_of_[std::string(op.acc.str())] = op.a;
  }

  // The mirror image of a store: the same rows of 16 bytes, read into the same registers.
  void take(const matile::Take& op) {
    const auto [ring, part] = r_.part(op.part);
    const auto& tile = scope_.tiles.find(op.tile.str())->second;
    check_store_formula({.tile = part->tile, .cols = part->tile.cols});
    out_.open("{{  // {} from {}", op.tile.str(), op.part.str());
    std::string from = slot_address(*ring, *part, identifier(ring->op->name.str()));
    if (ring->copies > 1) from += fmt::format(" + {} * {}", group_text(), ring->copy_bytes());
    if (op.rows) from += fmt::format(" + ({}) * 128", text(op.rows));
    out_.line("const u32 to = {};", from);
    out_.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
    out_.open("UNROLL for (int step = 0; step < {}; ++step) {{", array_length(tile) / 4);
    out_.line("u32 x[4];");
    out_.line(
        "ldmatrix_x4(to + step / 4 * {} + row * 128 + ((2 * step % 8 + half) ^ (row % 8)) * 16, "
        "x);",
        part->tile.panel_bytes());
    out_.line("UNROLL for (int reg = 0; reg < 4; ++reg) {}[4 * step + reg] = x[reg];",
              identifier(op.tile.str()));
    out_.close();
    out_.close();
  }

  // mma.sync on the rows of this warp; its accumulator lies as that of the warp group's product.
  void warp_dot(const matile::WarpDot& op) {
    const auto& acc = scope_.tiles.find(op.acc.str())->second;
    const std::string name = identifier(op.acc.str());
    const auto address = [&](ir::Name part_name) {
      const auto [ring, part] = r_.part(part_name);
      std::string out = slot_address(*ring, *part, identifier(ring->op->name.str()));
      if (ring->copies > 1) out += fmt::format(" + {} * {}", group_text(), ring->copy_bytes());
      return out;
    };
    const PartInfo& a = *r_.part(op.a).second;
    const PartInfo& b = *r_.part(op.b).second;
    out_.open("{{  // {} = {} . {}, by this warp", op.acc.str(), op.a.str(), op.b.str());
    out_.line("const u32 from_a = {}{};", address(op.a),
              op.rows ? fmt::format(" + ({}) * 128", text(op.rows)) : "");
    out_.line("const u32 from_b = {};", address(op.b));
    out_.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
    out_.line("UNROLL for (int reg = 0; reg < {}; ++reg) {}[reg] = 0.f;", array_length(acc), name);
    out_.open("NO_UNROLL for (int step = 0; step < {}; ++step) {{", a.tile.cols / 16);
    out_.line("u32 x[4], y[4];");
    out_.line(
        "ldmatrix_x4(from_a + step / 4 * {} + row * 128 + ((step % 4 * 2 + half) ^ (row % 8)) "
        "* 16, x);",
        a.tile.panel_bytes());
    out_.open("UNROLL for (int reg = 0; reg < {}; reg += 8) {{", array_length(acc));
    out_.line(
        "ldmatrix_x4(from_b + step / 4 * {} + (2 * reg + 8 * half + lane % 8) * 128 + ((step % "
        "4 * 2 + lane / 8 % 2) ^ (lane % 8)) * 16, y);",
        b.tile.panel_bytes());
    out_.line("mma_{}({}, reg, x, y[0], y[1]);", expr::name(b.op->type.dtype), name);
    out_.line("mma_{}({}, reg + 4, x, y[2], y[3]);", expr::name(b.op->type.dtype), name);
    out_.close();
    out_.close();
    out_.close();
  }

  void wait(const matile::Wait& op) {
    if (!op.acc) return out_.line("wgmma_wait<{}>();", *op.leaves);
    std::vector<std::pair<bool, int>> arrays;
    std::string names;
    const auto add = [&](ir::Name name) {
      const TileText& tile = scope_.tiles.find(name.str())->second;
      arrays.emplace_back(expr::bytes(tile.op->type.dtype) == 2, array_length(tile));
      names += (names.empty() ? "" : ", ") + identifier(name.str());
    };
    add(op.acc);
    if (const auto it = a_of_.find(std::string(op.acc.str())); it != a_of_.end()) add(it->second);
    instructions_.waits.insert(arrays);
    out_.line("wgmma_wait<{}>({});", *op.leaves, names);
  }

  void ticket(const matile::Ticket& op) {
    const std::string name = identifier(op.name.str());
    const std::string slot = fmt::format("smem + {} + 4 * group", r_.tickets);
    const std::string sync = fmt::format("bar_sync({} + {}, 128);", role_->sync, group_text());
    out_.line("global_fence();");
    out_.line("{}", sync);
    out_.open("if (leader) {{");
    out_.line("int* const counter = p.{} + {};", identifier(op.counter.str()), text(op.index));
    out_.line("const bool is_last = global_add(counter, 1) == {} - 1;", text(op.count));
    out_.line("if (is_last) global_set(counter, 0);");
    out_.line("shared_store_i32({}, is_last);", slot);
    out_.close();
    out_.line("{}", sync);
    out_.line("const bool {} = uniform(shared_load_i32({})) != 0;", name, slot);
    out_.line("if ({}) global_fence();", name);
    define(op.name);
  }

  void store(const matile::Store& op) {
    const auto& stage = *r_.stage(op.stage);
    const auto& tile = scope_.tiles.find(op.tile.str())->second;
    const layout::FragmentStore fragment{.tile = stage.tile, .cols = stage.tile.cols};
    const std::string cursor = identifier(op.stage.str()) + "_at";
    const bool has_cursor = stage.buffers() > 1;
    check_store_formula(fragment);
    out_.open("{{  // store {} through {}", op.tile.str(), op.stage.str());
    out_.line("const u32 to = smem + {} + ({}{}) * {};", stage.offset,
              has_cursor ? fmt::format("{} * {} + ", group_text(), stage.buffers()) : group_text(),
              has_cursor ? cursor : "", stage.tile.bytes());
    out_.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
    out_.line("if (leader) tma_wait_read<{}>();", stage.buffers() - 1);
    out_.line("bar_sync({} + {}, 128);", role_->sync, group_text());
    const std::string x = identifier(op.tile.str());
    out_.line(
        "UNROLL for (int step = 0; step < {0}; ++step) stmatrix_x4(to + step / 4 * {1} + row * 128 "
        "+ "
        "((2 * step % 8 + half) ^ (row % 8)) * 16, {2}[4 * step], {2}[4 * step + 1], {2}[4 * step "
        "+ "
        "2], {2}[4 * step + 3]);",
        array_length(tile) / 4, stage.tile.panel_bytes(), x);
    out_.line("fence_async();");
    out_.line("bar_sync({} + {}, 128);", role_->sync, group_text());
    out_.line("if (leader) {{ tma_store(&p.{}, to{}); tma_commit(); }}", identifier(op.map.str()),
              list(op.at));
    if (has_cursor) out_.line("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", cursor, stage.buffers());
    out_.close();
  }

  // The text above computes what layout/stmatrix.h defines.
  static void check_store_formula(const layout::FragmentStore& f) {
    for (int step = 0; step < f.steps(); ++step) {
      for (int warp = 0; warp < 4; ++warp) {
        for (int lane = 0; lane < 32; ++lane) {
          const int row = 16 * warp + lane % 16;
          const int half = lane / 16;
          const auto at = static_cast<uint32_t>(step / 4 * f.tile.panel_bytes() + row * 128 +
                                                ((2 * step % 8 + half) ^ (row % 8)) * 16);
          NAUT_CHECK(at == layout::lane_row_offset(f, warp, lane, step),
                     "the staging address of step {} is wrong", step);
        }
      }
    }
  }

  const ir::Program& program_;
  const matile::Kernel& kernel_;
  expr::ExprPool& pool_;
  Resources r_;
  Writer out_;
  Instructions instructions_;
  GlobalTensors globals_;
  expr::Facts base_facts_;
  std::map<std::string, int64_t, std::less<>> divisors_;
  std::set<std::string, std::less<>> vectors_;
  // Of the role being printed:
  const RoleInfo* role_ = nullptr;
  RegisterScope scope_;
  expr::Facts facts_;
  std::set<std::string, std::less<>> locals_;
  std::vector<std::pair<std::tuple<ir::Name, layout::Major, Expr>, std::string>> descriptors_;
  std::map<std::string, ir::Name> a_of_;  // register operand of the last product into a tile
  std::map<std::string, int> held_;       // slots held of each ring
  std::vector<std::map<std::string, int>> held_stack_;
  bool stage_used_ = false;
};

}  // namespace

std::vector<KernelText> emit_kernels(const ir::Program& program, expr::ExprPool& pool) {
  std::vector<KernelText> out;
  for (const Op& op : program.body) {
    if (const auto* kernel = op.get<matile::Kernel>())
      out.push_back(KernelEmitter(program, *kernel, pool).run());
  }
  return out;
}

std::string device_source(const KernelText& kernel) {
  return std::string(device_prelude()) + kernel.instructions + std::string(kBodyMarker) +
         kernel.body;
}

}  // namespace nautilus::emit
