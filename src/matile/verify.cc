// SPDX-License-Identifier: Apache-2.0
// Names, shapes and places of the MA-tile level. Rules about time are in verify_flow.cc, those
// about quantities in verify_resources.cc and verify_skeletons.cc.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "expr/affine.h"
#include "expr/walk.h"
#include "ir/verify.h"
#include "ir/walk.h"
#include "layout/fragments.h"
#include "matile/access.h"
#include "matile/verify_elements.h"
#include "matile/verify_rules.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

class MatileVerifier {
 public:
  MatileVerifier(const ir::Program& program, diag::Sink& sink)
      : program_(program), sink_(sink), v_(sink) {}

  void run() {
    for (const Op& op : program_.body) {
      v_.set_op(op);
      top(op);
    }
  }

 private:
  bool is_clean() const { return sink_.all().size() == before_; }

  // --- the plan -----------------------------------------------------------------------------

  void top(const Op& op) {
    switch (kind(op)) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
        v_.check_decl(op);
        return;
      case Kind::Oracle:
        if (has_oracle_) v_.fail("`oracle` stands twice");
        has_oracle_ = true;
        return;
      case Kind::Tensor: {
        const auto& t = op.as<Tensor>();
        v_.check_type(t.type);
        v_.declare_tensor(t.name, t.type);
        roles_.emplace(t.name.str(), t.role);
        return;
      }
      case Kind::Machine:
        if (op.as<Machine>().name.str() != "sms")
          v_.fail(
              fmt::format("a machine has no `{}`; known is `sms`", op.as<Machine>().name.str()));
        v_.declare_var(op.as<Machine>().name, DType::I64);
        return;
      case Kind::Let:
        v_.check_closed(op.as<Let>().value, op.as<Let>().value.dtype(), "the value");
        v_.declare_var(op.as<Let>().name, op.as<Let>().value.dtype());
        return;
      case Kind::Map:
        return map(op.as<Map>());
      case Kind::Kernel:
        return kernel(op);
      case Kind::Launch:
        v_.check_closed(op.as<Launch>().grid, DType::I64, "the grid");
        for (ir::Name name : {op.as<Launch>().kernel, op.as<Launch>().other}) {
          if (name && !kernels_.contains(std::string(name.str())))
            v_.fail(fmt::format("there is no kernel `{}` before", name.str()));
        }
        return;
      default:
        v_.fail(fmt::format("`{}` stands inside of a kernel", op.info().mnemonic()));
    }
  }

  void map(const Map& m) {
    if (maps_.contains(std::string(m.name.str())) || v_.is_defined(m.name))
      v_.fail(fmt::format("`{}` is defined twice", m.name.str()));
    if (verify_map(m, v_)) maps_.emplace(m.name.str(), &m);
  }

  // --- a kernel -----------------------------------------------------------------------------

  void kernel(const Op& op) {
    if (!sink_.all().empty()) return;  // a kernel means something only with its plan
    const auto& k = op.as<Kernel>();
    if (!kernels_.emplace(k.name.str()).second)
      v_.fail(fmt::format("kernel `{}` is defined twice", k.name.str()));
    if (!k.body.empty() && k.body[0].is<Points>()) {
      v_.set_op(k.body[0]);
      if (k.body.size() != 1) v_.fail("`points` stands alone in its kernel");
      return verify_points(k.body[0].as<Points>(), roles_, v_);
    }
    if (k.form != KernelForm::Final) return verify_nest(k, maps_, v_);
    names_.clear();
    const size_t kernel_mark = v_.mark();
    before_ = sink_.all().size();
    if (k.cluster && (*k.cluster < 2 || *k.cluster > kMaxCluster))
      v_.fail(fmt::format("a cluster has 2 to {} CTAs, not {}", kMaxCluster, *k.cluster));
    if (k.rank && !k.cluster) v_.fail("only CTAs of a cluster have a rank");
    if (k.rank && unique(k.rank)) v_.declare_local(k.rank, DType::I64);
    for (const Op& inner : k.body) {
      v_.set_op(inner);
      declaration(inner);
    }
    if (!is_clean()) return;
    r_ = resources_of(k);
    std::set<std::string> written;
    ir::for_each_op(k.body, [&](const Op& inner) {
      if (const auto* p = inner.get<Put>()) written.emplace(p->target.str());
      const auto* s = inner.get<Store>();
      const auto m = s ? maps_.find(s->map.str()) : maps_.end();
      if (m != maps_.end()) written.emplace(m->second->value.name().str());
    });
    e_.set_written(std::move(written));
    references(k);
    if (!is_clean()) return;
    for (const Op& inner : k.body) {
      if (const auto* role = inner.get<Role>()) {
        v_.set_op(inner);
        this->role(*role);
      }
    }
    if (!is_clean()) return;
    verify_resources(k, op.span(), r_, sink_);
    verify_clusters(k, sink_);
    for (const Op& inner : k.body) {
      if (const auto* role = inner.get<Role>()) verify_flow(*role, r_, sink_);
    }
    if (is_clean()) verify_skeletons(program_, k, op.span(), r_, sink_);
    v_.leave_axes(kernel_mark);
  }

  // Roles that declarations name, and what they ask of them.
  void references(const Kernel& k) {
    const auto compute = [&](ir::Name name) {
      const RoleInfo* role = r_.role(name);
      if (!role || !role->is_compute())
        v_.fail(fmt::format("the kernel has no role `{}` of warp groups", name.str()));
    };
    std::set<int64_t> warps;
    for (const Op& op : k.body) {
      v_.set_op(op);
      if (const auto* turn = op.get<Turn>()) compute(turn->role);
      if (const auto* ring = op.get<Ring>(); ring && ring->per) compute(ring->per);
      if (const auto* role = op.get<Role>(); role && role->unit == RoleUnit::Warp) {
        if (!warps.insert(*role->count).second)
          v_.fail(fmt::format("warp {} has another role already", *role->count));
      }
      const auto* stage = op.get<Stage>();
      if (!stage) continue;
      compute(stage->role);
      if (!stage->ring) continue;
      const RingInfo* ring = r_.ring(stage->ring);
      if (!ring || ring->op->per != stage->role || ring->parts.size() != 1 ||
          !(ring->parts[0].tile == panel_tile(stage->type, MapSwizzle::B128)))
        v_.fail(
            fmt::format("a stage lies on a ring of its role with one part of its shape; `{}` is "
                        "none",
                        stage->ring.str()));
    }
  }

  bool unique(ir::Name name) {
    if (names_.emplace(name.str()).second && !v_.is_defined(name)) return true;
    v_.fail(fmt::format("`{}` is defined twice", name.str()));
    return false;
  }

  void declaration(const Op& op) {
    switch (kind(op)) {
      case Kind::Tiles: {
        const auto& t = op.as<Tiles>();
        unique(t.name);
        v_.check_closed(t.count, DType::I64, "the number of tiles");
        if ((t.source == TileSource::Dynamic) != static_cast<bool>(t.counter))
          v_.fail("dynamic tiles, and only these, have a counter");
        if (t.counter) {
          const ir::TensorType* type = v_.tensor(t.counter);
          if (!type || type->dtype != DType::I32 || !is_scratch(t.counter))
            v_.fail("the counter is a scratch tensor of i32");
        }
        return;
      }
      case Kind::Ring: {
        const auto& ring = op.as<Ring>();
        unique(ring.name);
        if (ring.slots.value_or(0) < 1 || *ring.slots > 64) v_.fail("a ring has 1 to 64 slots");
        if (ring.body.empty()) v_.fail("a ring's slot has at least one part");
        for (const Op& part : ring.body) {
          v_.set_op(part);
          if (const auto* p = part.get<Part>())
            this->part(*p);
          else
            v_.fail("a ring consists of parts");
        }
        return;
      }
      case Kind::Cta:
        unique(op.as<Cta>().index);
        unique(op.as<Cta>().count);
        v_.declare_local(op.as<Cta>().index, DType::I64);
        v_.declare_local(op.as<Cta>().count, DType::I64);
        return;
      case Kind::Turn:
        unique(op.as<Turn>().name);
        return;
      case Kind::Stage: {
        const auto& stage = op.as<Stage>();
        unique(stage.name);
        const auto shape = static_shape(stage.type);
        if (shape.size() != 2 || shape[0] != 64 || shape[1] % 64 != 0 || shape[1] == 0 ||
            !is_half(stage.type.dtype))
          v_.fail("a stage holds 64 rows of a multiple of 64 columns of 16-bit floats");
        if (stage.buffers.value_or(0) < 1 || *stage.buffers > 64)
          v_.fail("a stage has 1 to 64 buffers");
        if (stage.ring && stage.buffers.value_or(0) != 1)
          v_.fail("a stage on a ring has one buffer, the slot");
        return;
      }
      case Kind::Role: {
        const auto& role = op.as<Role>();
        unique(role.name);
        const int64_t count = role.count.value_or(-1);
        if (role.unit == RoleUnit::Warp && (count < 0 || count > 3))
          v_.fail("a loading role is warp 0 to 3");
        if (role.unit == RoleUnit::Groups && (count < 1 || count > 7))
          v_.fail("a role has 1 to 7 warp groups");
        if (role.unit == RoleUnit::Groups && count > 1 && !role.index)
          v_.fail("several groups are told apart by an index");
        const int64_t regs = role.regs.value_or(0);
        if (regs % 8 != 0 || regs < 24 || regs > 256)
          v_.fail(fmt::format("registers are a multiple of 8 from 24 to 256, not {}", regs));
        return;
      }
      default:
        v_.fail(fmt::format("`{}` does not stand directly in a kernel", op.info().mnemonic()));
    }
  }

  void part(const Part& p) {
    unique(p.name);
    const auto shape = static_shape(p.type);
    // Elements of one row lie side by side, as in panels of 16 bytes.
    const bool is_line = shape.size() == 2 && shape[0] == 1 && p.swizzle == MapSwizzle::None;
    if (shape.size() != 2 || (!is_line && (shape[0] < 8 || shape[0] % 8 != 0)) || shape[0] > 256 ||
        shape[1] < 1 || shape[1] > 4096)
      return v_.fail("a part has a multiple of 8 rows, up to 256, and constant extents");
    const layout::PanelTile tile = panel_tile(p.type, p.swizzle);
    if (tile.cols % tile.panel_cols() != 0)
      v_.fail(
          fmt::format("the columns of a part are a multiple of its panels' {}", tile.panel_cols()));
  }

  bool is_scratch(ir::Name name) const {
    return tensors(program_, TensorRole::Scratch).contains(std::string(name.str()));
  }

  // --- a role -------------------------------------------------------------------------------

  void role(const Role& role) {
    role_ = &role;
    tiles_.clear();
    unrolled_.clear();
    votes_.clear();
    tickets_.clear();
    const size_t mark = v_.mark();
    has_each_ = false;
    if (role.index) local(role.index, DType::I64);
    depth_ = 0;
    block(role.body, true);
    v_.leave_axes(mark);
    for (const auto& [name, tile] : tiles_) v_.forget_tensor(tile.op->name);
  }

  void block(const ir::Block& ops, bool is_uniform) {
    const size_t mark = v_.mark();
    const std::set<std::string> votes = votes_;
    ++depth_;
    for (const Op& op : ops) {
      v_.set_op(op);
      statement(op, is_uniform);
    }
    --depth_;
    votes_ = votes;
    v_.leave_axes(mark);
  }

  // A name of the open block. It may not hide one of the kernel's: both are names of one text.
  void local(ir::Name name, DType dtype) {
    if (names_.contains(std::string(name.str())))
      return v_.fail(fmt::format("`{}` is defined twice", name.str()));
    v_.declare_local(name, dtype);
  }

  bool is_compute() const { return role_->unit == RoleUnit::Groups; }

  void statement(const Op& op, bool is_uniform) {
    const Kind k = kind(op);
    const bool is_register_work = k == Kind::Set || k == Kind::Fold || k == Kind::Lanes ||
                                  k == Kind::Vote || k == Kind::Put || k == Kind::Let ||
                                  k == Kind::WarpDot;
    if (!is_uniform && !is_register_work)
      return v_.fail(fmt::format("`{}` under a vote: only register work may stand there",
                                 op.info().mnemonic()));
    switch (k) {
      case Kind::Tile:
        return tile(op.as<Tile>());
      case Kind::Let:
        number(op.as<Let>().value);
        return local(op.as<Let>().name, op.as<Let>().value.dtype());
      case Kind::Each: {
        const auto& each = op.as<Each>();
        if (!r_.tiles_of(each.tiles))
          return v_.fail(fmt::format("the kernel has no tiles `{}`", each.tiles.str()));
        const int64_t by = each.alternate.value_or(1);
        if (by != 1 && (!is_compute() || by != *role_->count || !role_->index))
          v_.fail("the groups of a role alternate all together, by its index");
        if (by != 1 && r_.tiles_of(each.tiles)->op->source == TileSource::Dynamic)
          v_.fail("groups alternate on static tiles only");
        if (has_each_) v_.fail("a role walks the tiles once");
        if (depth_ != 1) v_.fail("the walk over the tiles stands directly in the role");
        has_each_ = true;
        return body(each.var, each.body);
      }
      case Kind::Loop:
        scalar(op.as<Loop>().from, DType::I64, "the first value");
        scalar(op.as<Loop>().to, DType::I64, "the last value");
        return body(op.as<Loop>().var, op.as<Loop>().body);
      case Kind::Unroll:
        return unroll(op.as<Unroll>());
      case Kind::If: {
        const auto& branch = op.as<If>();
        if (is_vote(branch.condition))
          v_.check(branch.condition, "the condition");
        else
          scalar(branch.condition, DType::Bool, "the condition");
        const bool was_behind = e_.is_behind_ticket();
        e_.set_behind_ticket(was_behind || is_ticket(branch.condition));
        block(branch.body, is_uniform && !is_vote(branch.condition));
        return e_.set_behind_ticket(was_behind);
      }
      case Kind::Fill:
        return fill(op.as<Fill>());
      case Kind::Get:
        return ring(op.as<Get>().ring);
      case Kind::Release:
        return ring(op.as<Release>().ring);
      case Kind::Skip:
        return ring(op.as<Skip>().ring);
      case Kind::Jump:
        scalar(op.as<Jump>().slots, DType::I64, "the number of slots");
        return ring(op.as<Jump>().ring);
      case Kind::Enter:
        return turn(op.as<Enter>().turn);
      case Kind::Leave:
        return turn(op.as<Leave>().turn);
      case Kind::Dot:
        return dot(op.as<Dot>());
      case Kind::WarpDot:
        return warp_dot(op.as<WarpDot>());
      case Kind::Take:
        return take(op.as<Take>());
      case Kind::Wait:
        if (op.as<Wait>().leaves.value_or(-1) < 0) v_.fail("a wait leaves 0 or more groups");
        if (op.as<Wait>().acc) find_tile(op.as<Wait>().acc);
        return;
      case Kind::Set:
        return e_.set(op.as<Set>());
      case Kind::Fold:
        return e_.fold(op.as<Fold>());
      case Kind::Lanes:
        find_tile(op.as<Lanes>().tile);
        if (!ElementRules::is_foldable(op.as<Lanes>().reducer))
          v_.fail("lanes combine by sum, max or min");
        return;
      case Kind::Warps: {
        const TileUse* tile = find_tile(op.as<Warps>().tile);
        if (!ElementRules::is_foldable(op.as<Warps>().reducer))
          v_.fail("warps combine by sum, max or min");
        if (!tile) return;
        const auto& digits = tile->layout.digits();
        const bool has_copies = std::any_of(digits.begin(), digits.end(), [](const auto& d) {
          return d.axis == layout::kCopies && d.owner == layout::Owner::Warp;
        });
        if (!has_copies || tile->op->type.dtype != DType::F32)
          v_.fail(
              fmt::format("`{}` is no f32 tile of which every warp holds a part of each element",
                          op.as<Warps>().tile.str()));
        return;
      }
      case Kind::Convert:
        return v_.fail("tiles cannot change their layout by lanes or shared memory yet");
      case Kind::Load:
        return e_.load(op.as<Load>());
      case Kind::Forget: {
        const TileUse* tile = find_tile(op.as<Forget>().tile);
        if (tile && !is_half(tile->op->type.dtype))
          v_.fail("`forget` is for tiles of 16-bit floats");
        return;
      }
      case Kind::Vote:
        e_.vote(op.as<Vote>());
        local(op.as<Vote>().name, DType::Bool);
        votes_.emplace(op.as<Vote>().name.str());
        return;
      case Kind::Ticket: {
        const auto& t = op.as<Ticket>();
        if (!is_compute()) v_.fail("a loading role takes no ticket");
        scalar(t.index, DType::I64, "the index");
        scalar(t.count, DType::I64, "the count");
        const ir::TensorType* type = v_.tensor(t.counter);
        if (!type || type->dtype != DType::I32 || type->dims.size() != 1 || !is_scratch(t.counter))
          v_.fail("the counter is a scratch tensor of i32 with one dimension");
        tickets_.emplace(t.name.str());
        return local(t.name, DType::Bool);
      }
      case Kind::Put:
        return e_.put(op.as<Put>());
      case Kind::Store:
        return store(op.as<Store>());
      default:
        v_.fail(fmt::format("`{}` does not stand in a role", op.info().mnemonic()));
    }
  }

  bool is_ticket(Expr e) const {
    return e.op() == EK::Var && tickets_.contains(std::string(e.name().str()));
  }

  bool is_vote(Expr e) const {
    return e.op() == EK::Var && votes_.contains(std::string(e.name().str()));
  }

  void body(ir::Name var, const ir::Block& ops) {
    const size_t mark = v_.mark();
    local(var, DType::I64);
    block(ops, true);
    v_.leave_axes(mark);
  }

  void unroll(const Unroll& op) {
    const size_t mark = v_.enter_axes(op.axes);
    bool ok = true;
    for (const ir::Axis& a : op.axes) {
      ok &= a.extent.op() == EK::IntConst && a.extent.integer() >= 1 && a.extent.integer() <= 64;
      if (ok) unrolled_[std::string(a.name.str())] = static_cast<int>(a.extent.integer());
    }
    if (ok)
      block(op.body, true);
    else
      v_.fail("an unrolled loop has a constant extent from 1 to 64");
    for (const ir::Axis& a : op.axes) unrolled_.erase(std::string(a.name.str()));
    v_.leave_axes(mark);
  }

  // A scalar of a role: no tensors, no reductions.
  void scalar(Expr e, DType dtype, std::string_view what) {
    v_.check(e, what);
    v_.check_dtype(e, dtype, what);
    if (expr::has_reduce(e) || !expr::tensors_read(e).empty())
      v_.fail(fmt::format("{} is a scalar; it reads no tensor", what));
    for (Expr v : expr::free_vars(e)) {
      if (is_vote(v))
        v_.fail(
            fmt::format("the vote `{}` differs from warp to warp; it stands alone as a condition",
                        v.name().str()));
    }
    e_.functions(e);
  }

  // A scalar that may be read from memory.
  void number(Expr e) {
    if (expr::tensors_read(e).empty() || expr::has_reduce(e))
      return scalar(e, e.dtype(), "the value");
    v_.check(e, "the value");
    for (Expr v : expr::free_vars(e)) {
      if (is_vote(v)) v_.fail("a number that is read does not depend on a vote");
    }
    if (const std::string why = number_problem(e, program_); !why.empty()) v_.fail(why);
    e_.functions(e);
  }

  void tile(const Tile& t) {
    if (!is_compute()) return v_.fail("a loading role has no register tiles");
    if (depth_ != 1) return v_.fail("register tiles stand directly in the role");
    if (t.spread == Spread::Unset) return v_.fail("a register tile is acc, row, col or line");
    if (!unique(t.name)) return;
    names_.erase(std::string(t.name.str()));  // another role may use the name again
    const auto shape = static_shape(t.type);
    const bool is_acc = t.spread == Spread::Acc;
    if (t.spread == Spread::Line) return line(t, shape);
    if (t.by) return v_.fail("`by` is for line tiles");
    const bool ok = shape.size() == (is_acc ? 2u : 1u) &&
                    (t.spread == Spread::Col ? shape[0] % 8 == 0 : shape[0] % 64 == 0) &&
                    shape[0] > 0 && shape[0] <= 512 &&
                    (!is_acc || (shape[1] % 8 == 0 && shape[1] > 0 && shape[1] <= 256));
    if (!ok)
      return v_.fail(
          "an acc tile has a multiple of 64 rows and of 8 columns (up to 256), a row tile a "
          "multiple of 64, a col tile a multiple of 8");
    if (t.type.dtype != DType::F32 && !(is_acc && is_half(t.type.dtype)))
      return v_.fail("register tiles are f32, acc tiles also 16-bit floats");
    v_.declare_tensor(t.name, t.type);
    tiles_.emplace(t.name.str(), TileUse{&t, layout_of(t)});
  }

  void line(const Tile& t, const std::vector<int>& shape) {
    if (t.type.dtype != DType::F32 && !is_half(t.type.dtype))
      return v_.fail("a line tile holds f32 or 16-bit floats");
    const int64_t by = t.by.value_or(16 / expr::bytes(t.type.dtype));
    const bool is_value = shape.empty() && t.type.dtype == DType::F32 && !t.by;
    const bool is_line = shape.size() == 1 && (by == 1 || by == 2 || by == 4 || by == 8) &&
                         shape[0] > 0 && shape[0] % (128 * by) == 0;
    if (!is_value && !is_line)
      return v_.fail(
          "a line tile is one f32, or a multiple of 128 threads times 1, 2, 4 or 8 neighbours");
    v_.declare_tensor(t.name, t.type);
    tiles_.emplace(t.name.str(), TileUse{&t, layout_of(t)});
  }

  const TileUse* find_tile(ir::Name name) { return e_.find_tile(name); }

  void ring(ir::Name name) {
    const RingInfo* info = r_.ring(name);
    if (!info) return v_.fail(fmt::format("the kernel has no ring `{}`", name.str()));
    if (!is_compute()) return v_.fail("a loading role fills rings, it does not read them");
    if (info->op->per && info->op->per != role_->name)
      v_.fail(fmt::format("ring `{}` belongs to role `{}`", name.str(), info->op->per.str()));
  }

  void turn(ir::Name name) {
    const TurnInfo* info = r_.turn(name);
    if (!info) return v_.fail(fmt::format("the kernel has no turn `{}`", name.str()));
    if (info->op->role != role_->name)
      v_.fail(
          fmt::format("turn `{}` is among the groups of `{}`", name.str(), info->op->role.str()));
  }

  void fill(const Fill& op) {
    const RingInfo* info = r_.ring(op.ring);
    if (!info) return v_.fail(fmt::format("the kernel has no ring `{}`", op.ring.str()));
    if (is_compute()) v_.fail("only a loading role fills a ring");
    if (info->filler != role_)
      v_.fail(fmt::format("ring `{}` is filled by two roles", op.ring.str()));
    if (static_cast<bool>(op.group) != static_cast<bool>(info->op->per))
      v_.fail("a ring per group, and only such a ring, is filled for each group");
    const size_t mark = v_.mark();
    if (op.group) local(op.group, DType::I64);
    std::set<std::string> filled;
    for (const Op& inner : op.body) {
      v_.set_op(inner);
      if (const auto* c = inner.get<Copy>())
        copy(*c, *info, filled);
      else
        v_.fail("a fill consists of copies");
    }
    size_t boxes = 0;
    for (const PartInfo& part : info->parts)
      boxes += filled.contains(std::string(part.op->name.str()))
                   ? 1
                   : static_cast<size_t>(part.tile.panels());
    if (filled.size() != boxes || op.body.size() != boxes)
      v_.fail(fmt::format("a fill of `{}` copies each part of its slot once", op.ring.str()));
    v_.leave_axes(mark);
  }

  void copy(const Copy& c, const RingInfo& ring_info, std::set<std::string>& filled) {
    const auto [owner, part] = r_.part(c.part);
    if (owner != &ring_info)
      return v_.fail(
          fmt::format("`{}` is no part of ring `{}`", c.part.str(), ring_info.op->name.str()));
    filled.emplace(c.panel ? fmt::format("{} {}", c.part.str(), *c.panel) : c.part.str());
    if (c.panel && (*c.panel < 0 || *c.panel >= part->tile.panels()))
      v_.fail(fmt::format("`{}` has {} panels", c.part.str(), part->tile.panels()));
    const Map* m = coordinates(c.map, c.at);
    if (!m) return;
    if (c.reach == Reach::Multicast) return share(c, *m, *part);
    int64_t elements = 1;
    for (Expr b : m->box) elements *= b.integer();
    const int64_t rows = m->box.size() > 1 ? m->box[1].integer() : 1;
    const int width = part->tile.rows == 1 ? part->tile.cols : part->tile.panel_cols();
    if (m->value.dtype() != part->op->type.dtype || m->swizzle != part->op->swizzle ||
        m->box[0].integer() != width || rows != part->tile.rows ||
        elements != static_cast<int64_t>(part->tile.rows) *
                        (c.panel ? part->tile.panel_cols() : part->tile.cols))
      v_.fail(
          fmt::format("the box of `{}` is not what part `{}` holds", c.map.str(), c.part.str()));
  }

  // The box of a multicast copy is what one CTA contributes.
  void share(const Copy& c, const Map& m, const PartInfo& part) {
    if (r_.cluster == 1) return v_.fail("a copy is multicast in kernels with clusters only");
    const auto share = share_of(part, r_.cluster);
    if (!share)
      return v_.fail(
          fmt::format("part `{}` does not divide into {} shares: whole panels, or multiples of 8 "
                      "rows of one panel",
                      c.part.str(), r_.cluster));
    bool ok = m.value.dtype() == part.op->type.dtype && m.swizzle == part.op->swizzle &&
              m.box.size() > share->axis && m.box[0].integer() == part.tile.panel_cols();
    for (size_t k = 1; k < m.box.size(); ++k) {
      const int wanted = k == share->axis ? share->extent : k == 1 ? part.tile.rows : 1;
      ok = ok && m.box[k].integer() == wanted;
    }
    if (!ok)
      v_.fail(fmt::format(
          "the box of `{}` is not one of {} shares of part `{}`, which have {} along axis {}",
          c.map.str(), r_.cluster, c.part.str(), share->extent, share->axis + 1));
  }

  const Map* coordinates(ir::Name name, const ir::Exprs& at) {
    const auto it = maps_.find(name.str());
    if (it == maps_.end()) {
      v_.fail(fmt::format("there is no map `{}`", name.str()));
      return nullptr;
    }
    if (at.size() != it->second->axes.size())
      v_.fail(fmt::format("map `{}` has {} axes, {} given", name.str(), it->second->axes.size(),
                          diag::counted(at.size(), "coordinate is", "coordinates are")));
    for (Expr e : at) scalar(e, DType::I64, "a coordinate");
    return it->second;
  }

  void dot(const Dot& op) {
    const TileUse* acc = find_tile(op.acc);
    const auto [b_ring, b] = r_.part(op.b);
    if (!b) return v_.fail(fmt::format("the kernel has no part `{}`", op.b.str()));
    if (!acc) return;
    if (acc->op->spread != Spread::Acc || acc->op->type.dtype != DType::F32)
      return v_.fail(fmt::format("`{}` is no accumulator (f32, acc)", op.acc.str()));
    const auto shape = static_shape(acc->op->type);
    const bool is_trans = op.trans == Trans::Yes;
    const int n = is_trans ? b->tile.rows : b->tile.cols;
    const int depth = is_trans ? b->tile.cols : b->tile.rows;
    const DType dtype = b->op->type.dtype;
    if (!is_half(dtype)) v_.fail("products have operands of 16-bit floats");
    if (n != shape[1])
      v_.fail(
          fmt::format("`{}` gives {} columns, the accumulator has {}", op.b.str(), n, shape[1]));
    if (depth % 16 != 0) v_.fail(fmt::format("the depth {} is no multiple of 16", depth));
    const auto a_tile = tiles_.find(op.a.str());
    if (a_tile != tiles_.end()) {
      const auto a_shape = static_shape(a_tile->second.op->type);
      if (a_tile->second.op->spread != Spread::Acc || a_shape[0] != shape[0] ||
          a_shape[1] != depth || a_tile->second.op->type.dtype != dtype)
        v_.fail(fmt::format("`{}` is not {} x {} of {}", op.a.str(), shape[0], depth,
                            expr::name(dtype)));
      if (op.rows) v_.fail("a register operand has no first row");
      if (shape[0] != 64) v_.fail("a register operand has 64 rows");
      return;
    }
    const auto [a_ring, a] = r_.part(op.a);
    if (!a) return v_.fail(fmt::format("`{}` is neither a tile nor a part", op.a.str()));
    if (a->tile.cols != depth || a->tile.rows < shape[0] || a->op->type.dtype != dtype)
      v_.fail(
          fmt::format("`{}` is not {} x {} of {}", op.a.str(), shape[0], depth, expr::name(dtype)));
    if (op.rows) first_row(op.rows);
  }

  // The first row of an operand becomes a part of its address: a multiple of the swizzle's 8 rows,
  // known at the beginning of the role.
  void first_row(Expr rows) {
    scalar(rows, DType::I64, "the first row");
    const auto affine = affine_index(rows);
    bool ok = affine && affine->constant % 8 == 0 && affine->constant >= 0;
    if (affine) {
      for (const auto& [name, coefficient] : affine->coefficients)
        ok &= role_->index && name == role_->index.str() && coefficient % 8 == 0 && coefficient > 0;
    }
    if (!ok) v_.fail("the first row is a multiple of 8 that depends on the role's index only");
  }

  void take(const Take& op) {
    const TileUse* tile = find_tile(op.tile);
    const PartInfo* part = r_.part(op.part).second;
    if (!part) return v_.fail(fmt::format("the kernel has no part `{}`", op.part.str()));
    if (op.rows) first_row(op.rows);
    if (!tile) return;
    const auto shape = static_shape(tile->op->type);
    const DType dtype = tile->op->type.dtype;
    const DType source = part->op->type.dtype;
    const bool is_line = part->tile.rows == 1 && tile->op->spread == Spread::Col && !op.rows &&
                         shape[0] % 8 == 0 && shape[0] + first_column(op.cols) <= part->tile.cols &&
                         dtype == DType::F32 && (is_half(source) || source == DType::F32);
    const bool is_box = tile->op->spread == Spread::Acc && source == dtype && shape[0] == 64 &&
                        shape[1] % 16 == 0 && (is_half(dtype) || dtype == DType::F32) &&
                        part->tile.rows >= 64 && part->tile.cols >= shape[1] && !op.cols &&
                        part->tile.swizzle == layout::Swizzle::B128;
    if (!is_line && !is_box)
      v_.fail(fmt::format("`{}` does not hold what `{}` takes", op.part.str(), op.tile.str()));
  }

  // The greatest first column: constants and unrolled variables, in steps of 8.
  int64_t first_column(Expr cols) {
    if (!cols) return 0;
    scalar(cols, DType::I64, "the first column");
    const auto affine = affine_index(cols);
    bool ok = affine && affine->constant % 8 == 0 && affine->constant >= 0;
    int64_t last = affine ? affine->constant : 0;
    if (affine) {
      for (const auto& [name, coefficient] : affine->coefficients) {
        const auto it = unrolled_.find(std::string(name));
        ok &= it != unrolled_.end() && coefficient % 8 == 0 && coefficient > 0;
        if (it != unrolled_.end()) last += coefficient * (it->second - 1);
      }
    }
    if (!ok) v_.fail("the first column is a multiple of 8 of unrolled variables");
    return last;
  }

  void warp_dot(const WarpDot& op) {
    const TileUse* acc = find_tile(op.acc);
    const PartInfo* a = r_.part(op.a).second;
    const PartInfo* b = r_.part(op.b).second;
    if (!a || !b) return v_.fail("the operands of `warpdot` are parts");
    if (!acc) return;
    const auto shape = static_shape(acc->op->type);
    if (acc->op->spread != Spread::Acc || acc->op->type.dtype != DType::F32 || shape[0] != 64 ||
        shape[1] % 16 != 0)
      return v_.fail("the accumulator of `warpdot` is f32, acc, 64 rows by a multiple of 16");
    if (op.trans != Trans::Yes || b->tile.rows != shape[1] || a->tile.cols != b->tile.cols ||
        a->tile.rows < 64 || b->tile.cols % 16 != 0 || !is_half(b->op->type.dtype) ||
        a->op->type.dtype != b->op->type.dtype || a->tile.swizzle != layout::Swizzle::B128 ||
        b->tile.swizzle != layout::Swizzle::B128)
      v_.fail(fmt::format("`{}` and `{}` do not give `{}`", op.a.str(), op.b.str(), op.acc.str()));
    if (op.rows) first_row(op.rows);
  }

  void store(const Store& op) {
    const TileUse* tile = find_tile(op.tile);
    const StageInfo* stage = r_.stage(op.stage);
    const Map* m = coordinates(op.map, op.at);
    if (!stage) return v_.fail(fmt::format("the kernel has no stage `{}`", op.stage.str()));
    if (stage->op->role != role_->name)
      v_.fail(
          fmt::format("stage `{}` belongs to role `{}`", op.stage.str(), stage->op->role.str()));
    if (!tile || !m) return;
    const auto role = roles_.find(m->value.name().str());
    if (role != roles_.end() && role->second == TensorRole::Input)
      v_.fail(fmt::format("the input `{}` is written", m->value.name().str()));
    if (tile->op->spread != Spread::Acc || !(tile->op->type == stage->op->type))
      v_.fail(fmt::format("`{}` is not what stage `{}` holds", op.tile.str(), op.stage.str()));
    int64_t elements = 1;
    for (Expr b : m->box) elements *= b.integer();
    if (m->value.dtype() != tile->op->type.dtype || m->box[0].integer() != 64 ||
        m->box.size() < 2 || m->box[1].integer() != 64 ||
        elements != static_cast<int64_t>(stage->tile.rows) * stage->tile.cols ||
        m->swizzle != MapSwizzle::B128)
      v_.fail(fmt::format("the box of `{}` is not what stage `{}` holds", op.map.str(),
                          op.stage.str()));
  }

  const ir::Program& program_;
  diag::Sink& sink_;
  ir::Verifier v_;
  bool has_oracle_ = false;
  std::map<std::string, TensorRole, std::less<>> roles_;
  KernelMaps maps_;
  std::set<std::string> kernels_;
  // Of the kernel:
  size_t before_ = 0;
  std::set<std::string> names_;
  Resources r_;
  // Of the role:
  const Role* role_ = nullptr;
  int depth_ = 0;  // of blocks
  bool has_each_ = false;
  RoleTiles tiles_;
  std::map<std::string, int> unrolled_;
  std::set<std::string> tickets_;
  std::set<std::string> votes_;
  ElementRules e_{v_, tiles_, roles_, unrolled_};
};

}  // namespace

bool verify(const ir::Program& program, diag::Sink& sink) {
  const size_t before = sink.all().size();
  MatileVerifier(program, sink).run();
  return sink.all().size() == before;
}

}  // namespace nautilus::matile
