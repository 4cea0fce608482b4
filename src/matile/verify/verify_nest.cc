// SPDX-License-Identifier: Apache-2.0
// Kernels that passes have not finished (nest form, roles form): names, shapes and dtypes. Places,
// waits and resources are not decided yet, so they are not checked.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "matile/verify/verify_elements.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;

class NestVerifier {
 public:
  NestVerifier(const Kernel& kernel, const KernelMaps& maps, ir::Verifier& v)
      : kernel_(kernel), maps_(maps), v_(v) {}

  void run() {
    const size_t mark = v_.mark();
    if (kernel_.rank) v_.declare_local(kernel_.rank, DType::I64);
    for (const Op& op : kernel_.body) {
      v_.set_op(op);
      declaration(op);
    }
    int roles = 0;
    for (const Op& op : kernel_.body) {
      const auto* role = op.get<Role>();
      if (!role) continue;
      ++roles;
      v_.set_op(op);
      if (kernel_.form == KernelForm::Nest && role->unit != RoleUnit::Groups)
        v_.fail("the role of a nest is one of warp groups");
      this->role(*role);
    }
    if (kernel_.form == KernelForm::Nest && roles != 1)
      v_.fail(fmt::format("a nest has one role, not {}", roles));
    v_.leave_axes(mark);
  }

 private:
  void unique(ir::Name name) {
    if (!names_.emplace(name.str()).second || v_.is_defined(name))
      v_.fail(fmt::format("`{}` is defined twice", name.str()));
  }

  void slot_tile(const SlotTile& p) {
    unique(p.name);
    const auto shape = static_shape(p.type);
    if (shape.size() != 2 || shape[0] <= 0 || shape[1] <= 0)
      return v_.fail("a slot tile has two constant extents");
    slot_tiles_.emplace(p.name.str(), &p);
  }

  void declaration(const Op& op) {
    switch (kind(op)) {
      case Kind::Tiles:
        unique(op.as<Tiles>().name);
        v_.check_closed(op.as<Tiles>().count, DType::I64, "the number of tiles");
        return;
      case Kind::SlotTile:
        return slot_tile(op.as<SlotTile>());
      case Kind::Ring:
        unique(op.as<Ring>().name);
        for (const Op& inner : op.as<Ring>().body) {
          if (const auto* p = inner.get<SlotTile>()) slot_tile(*p);
        }
        return;
      case Kind::Decisions:
        return;
      case Kind::Turn:
        return unique(op.as<Turn>().name);
      case Kind::Stage:
        return unique(op.as<Stage>().name);
      case Kind::Role:
        return unique(op.as<Role>().name);
      case Kind::Cta:
        v_.declare_local(op.as<Cta>().index, DType::I64);
        v_.declare_local(op.as<Cta>().count, DType::I64);
        return;
      default:
        v_.fail(fmt::format("`{}` does not stand directly in a kernel", op.info().mnemonic()));
    }
  }

  void role(const Role& role) {
    tiles_.clear();
    const size_t mark = v_.mark();
    if (role.index) v_.declare_local(role.index, DType::I64);
    block(role.body);
    v_.leave_axes(mark);
    for (const auto& [name, tile] : tiles_) v_.forget_tensor(tile->name);
  }

  void block(const ir::Block& ops) {
    const size_t mark = v_.mark();
    for (const Op& op : ops) {
      v_.set_op(op);
      statement(op);
    }
    v_.leave_axes(mark);
  }

  void with_var(ir::Name var, const ir::Block& ops) {
    const size_t mark = v_.mark();
    v_.declare_local(var, DType::I64);
    block(ops);
    v_.leave_axes(mark);
  }

  void scalar(Expr e, DType dtype) {
    v_.check(e, "a scalar");
    v_.check_dtype(e, dtype, "a scalar");
  }

  const Tile* tile(ir::Name name) {
    const auto it = tiles_.find(name.str());
    if (it != tiles_.end()) return it->second;
    v_.fail(fmt::format("the role has no tile `{}`", name.str()));
    return nullptr;
  }

  void elements(ir::Name target, const ir::Axes& axes, Expr value) {
    const size_t mark = v_.enter_axes(axes);
    v_.check(value, "the value");
    v_.leave_axes(mark);
    const Tile* t = tile(target);
    if (!t) return;
    const auto shape = static_shape(t->type);
    bool ok = axes.size() == shape.size();
    for (size_t k = 0; ok && k < shape.size(); ++k) ok = axes[k].extent.is_int(shape[k]);
    if (!ok) v_.fail(fmt::format("the axes are not those of `{}`", target.str()));
    v_.check_dtype(value, t->type.dtype, "the value");
  }

  void reduction(ir::Name target, const ir::Axes& axes, Expr value) {
    elements(target, axes, value);
    int count = 0;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != expr::Op::Reduce) return;
      ++count;
      if (!ElementRules::is_foldable(e.reducer()) || e.init())
        v_.fail("reductions of tiles are sum, max or min, without an initial element");
    });
    if (count != 1) v_.fail("the value has one reduction");
  }

  void fetch(const Fetch& f) {
    const auto slot_tile = slot_tiles_.find(f.slot_tile.str());
    if (slot_tile == slot_tiles_.end())
      return v_.fail(fmt::format("the kernel has no slot tile `{}`", f.slot_tile.str()));
    const auto map = maps_.find(f.map.str());
    if (map == maps_.end()) return v_.fail(fmt::format("there is no map `{}`", f.map.str()));
    if (f.at.size() != map->second->axes.size())
      v_.fail(fmt::format("map `{}` has {} axes", f.map.str(), map->second->axes.size()));
    for (Expr e : f.at) scalar(e, DType::I64);
    int64_t elements = 1;
    for (Expr b : map->second->box) elements *= b.integer();
    const auto shape = static_shape(slot_tile->second->type);
    const int64_t whole = static_cast<int64_t>(shape[0]) * shape[1];
    const int64_t width = map->second->box.empty() ? 1 : map->second->box[0].integer();
    if (map->second->value.dtype() != slot_tile->second->type.dtype ||
        (elements != whole && elements != width * shape[0]) || shape[1] % width != 0)
      v_.fail(
          fmt::format("the box of `{}` is not what `{}` holds", f.map.str(), f.slot_tile.str()));
  }

  void dot(const Dot& d) {
    const Tile* acc = tile(d.acc);
    const auto b = slot_tiles_.find(d.b.str());
    if (b == slot_tiles_.end())
      return v_.fail(fmt::format("the kernel has no slot tile `{}`", d.b.str()));
    if (!acc) return;
    const auto shape = static_shape(acc->type);
    const auto b_shape = static_shape(b->second->type);
    const bool is_trans = d.trans == Trans::Yes;
    const auto a = slot_tiles_.find(d.a.str());
    std::vector<int> a_shape;
    if (a != slot_tiles_.end()) {
      a_shape = static_shape(a->second->type);
    } else if (const Tile* t = tile(d.a)) {
      a_shape = static_shape(t->type);
    } else {
      return;
    }
    if (d.trans_a == Trans::Yes) {
      if (a == slot_tiles_.end()) v_.fail("a register operand is stored by rows");
      std::reverse(a_shape.begin(), a_shape.end());
    }
    if (shape.size() != 2 || a_shape.size() != 2 || a_shape[0] < shape[0] ||
        b_shape[is_trans ? 0 : 1] != shape[1] || a_shape[1] != b_shape[is_trans ? 1 : 0])
      v_.fail(fmt::format("`{}` and `{}` do not give `{}`", d.a.str(), d.b.str(), d.acc.str()));
    if (d.rows) scalar(d.rows, DType::I64);
  }

  void statement(const Op& op) {
    switch (kind(op)) {
      case Kind::Tile:
        return declare(op.as<Tile>());
      case Kind::Let:
        scalar(op.as<Let>().value, op.as<Let>().value.dtype());
        v_.declare_local(op.as<Let>().name, op.as<Let>().value.dtype());
        return;
      case Kind::Each:
        return with_var(op.as<Each>().var, op.as<Each>().body);
      case Kind::Loop:
        scalar(op.as<Loop>().from, DType::I64);
        scalar(op.as<Loop>().to, DType::I64);
        return with_var(op.as<Loop>().var, op.as<Loop>().body);
      case Kind::Unroll: {
        const size_t mark = v_.enter_axes(op.as<Unroll>().axes);
        block(op.as<Unroll>().body);
        return v_.leave_axes(mark);
      }
      case Kind::If:
        v_.check(op.as<If>().condition, "the condition");
        return block(op.as<If>().body);
      default:
        return work(op);
    }
  }

  // Ops in blocks that have no block of their own.
  void work(const Op& op) {
    switch (kind(op)) {
      case Kind::Fetch:
        return fetch(op.as<Fetch>());
      case Kind::Dot:
        return dot(op.as<Dot>());
      case Kind::Set:
        return elements(op.as<Set>().target, op.as<Set>().axes, op.as<Set>().value);
      case Kind::Reduce:
        return reduction(op.as<Reduce>().target, op.as<Reduce>().axes, op.as<Reduce>().value);
      case Kind::Fold:
        return reduction(op.as<Fold>().target, op.as<Fold>().axes, op.as<Fold>().value);
      case Kind::Convert:
        tile(op.as<Convert>().target);
        tile(op.as<Convert>().source);
        return;
      case Kind::Vote:
        v_.check(op.as<Vote>().value, "the vote");
        v_.declare_local(op.as<Vote>().name, DType::Bool);
        return;
      case Kind::Store:
        return store(op.as<Store>());
      case Kind::Lanes:
        return void(tile(op.as<Lanes>().tile));
      case Kind::Shares:
        return void(tile(op.as<Shares>().tile));
      case Kind::Warps:
        return void(tile(op.as<Warps>().tile));
      case Kind::Groups:
        return void(tile(op.as<Groups>().tile));
      case Kind::Ctas:
        return void(tile(op.as<Ctas>().tile));
      case Kind::Take:
        return void(tile(op.as<Take>().tile));
      case Kind::Fill:
        return fill(op.as<Fill>());
      case Kind::Put:
        return put(op.as<Put>());
      case Kind::Load:
      case Kind::Get:
      case Kind::Release:
      case Kind::Skip:
      case Kind::Jump:
      case Kind::Wait:
      case Kind::Enter:
      case Kind::Leave:
        if (kernel_.form == KernelForm::Roles || op.is<Load>()) return;
        [[fallthrough]];
      default:
        v_.fail(fmt::format("`{}` does not stand in a nest", op.info().mnemonic()));
    }
  }

  void declare(const Tile& t) {
    if (names_.contains(std::string(t.name.str())) || v_.is_defined(t.name))
      return v_.fail(fmt::format("`{}` is defined twice", t.name.str()));
    v_.declare_tensor(t.name, t.type);
    tiles_.emplace(t.name.str(), &t);
  }

  void store(const Store& s) {
    tile(s.tile);
    if (!maps_.contains(s.map.str())) v_.fail(fmt::format("there is no map `{}`", s.map.str()));
    for (Expr e : s.at) scalar(e, DType::I64);
  }

  void fill(const Fill& f) {
    const size_t mark = v_.mark();
    if (f.group) v_.declare_local(f.group, DType::I64);
    for (const Op& inner : f.body) {
      for (Expr e : inner.as<Copy>().at) scalar(e, DType::I64);
    }
    v_.leave_axes(mark);
  }

  void put(const Put& p) {
    const size_t mark = v_.enter_axes(p.axes);
    v_.check(p.value, "the value");
    for (Expr e : p.indices) v_.check(e, "an index");
    if (p.condition) v_.check(p.condition, "the condition");
    v_.leave_axes(mark);
  }

  const Kernel& kernel_;
  const KernelMaps& maps_;
  ir::Verifier& v_;
  std::set<std::string> names_;
  std::map<std::string, const SlotTile*, std::less<>> slot_tiles_;
  std::map<std::string, const Tile*, std::less<>> tiles_;
};

}  // namespace

void verify_nest(const Kernel& kernel, const KernelMaps& maps, ir::Verifier& verifier) {
  NestVerifier(kernel, maps, verifier).run();
}

bool verify_final(const ir::Program& program, diag::Sink& sink) {
  bool ok = true;
  for (const Op& op : program.body) {
    const auto* k = op.get<Kernel>();
    if (!k) continue;
    for (const Op& line : decision::lines(k->body)) {
      ok = false;
      sink.report(diag::Code::DecisionRefused, line.span(),
                  fmt::format("`{}`: nothing in kernel `{}` reads this line", ir::print(line),
                              k->name.str()));
    }
    if (k->form == KernelForm::Final) continue;
    ok = false;
    sink.report(diag::Code::NotVerified, op.span(),
                fmt::format("kernel `{}` is in the form `{}`: run the pass `{}` first",
                            k->name.str(), words(k->form)[static_cast<size_t>(k->form)],
                            k->form == KernelForm::Nest ? "split_roles" : "place_waits"))
        .with_help("`finish_kernels` runs all passes of a nest");
  }
  return ok;
}

}  // namespace nautilus::matile
