// SPDX-License-Identifier: Apache-2.0
#include "matile/rewrite.h"

#include <fmt/format.h>

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::matile {

using ir::Field;
using ir::FieldKind;
using ir::Op;

std::optional<ir::Program> map_kernels(
    const ir::Program& program, KernelForm form,
    const std::function<std::optional<Kernel>(const Kernel&)>& f) {
  ir::Program out = program;
  for (Op& op : out.body) {
    const auto* k = op.get<Kernel>();
    if (!k || k->form != form) continue;
    auto changed = f(*k);
    if (!changed) return std::nullopt;
    op = ir::make(std::move(*changed), op.span());
  }
  return out;
}

std::optional<ir::Program> map_nests(
    const ir::Program& program,
    const std::function<std::optional<Role>(const Kernel&, const Role&)>& f) {
  return map_kernels(program, KernelForm::Nest, [&](const Kernel& k) -> std::optional<Kernel> {
    Kernel out = k;
    for (Op& op : out.body) {
      const auto* role = op.get<Role>();
      if (!role) continue;
      auto changed = f(k, *role);
      if (!changed) return std::nullopt;
      op = ir::make(std::move(*changed), op.span());
    }
    return out;
  });
}

const ir::Block* block_of(const Op& op) {
  for (const Field& f : op.info().fields) {
    if (f.kind == FieldKind::Body) return &ir::field_value<ir::Block>(op.data(), f);
  }
  return nullptr;
}

Op with_block(const Op& op, ir::Block block) {
  auto data = ir::copy_data(op);
  for (const Field& f : op.info().fields) {
    if (f.kind == FieldKind::Body) ir::field_value<ir::Block>(data.get(), f) = std::move(block);
  }
  return Op(op.info(), op.span(), std::move(data));
}

ir::Block map_blocks(const ir::Block& block, const std::function<ir::Block(ir::Block)>& f) {
  ir::Block out;
  for (const Op& op : block) {
    const ir::Block* inner = block_of(op);
    out.push_back(inner ? with_block(op, map_blocks(*inner, f)) : op);
  }
  return f(std::move(out));
}

namespace {

// The tiles and slots that the op's own fields name.
void touch_named(const Op& op, Touched& t) {
  const auto read = [&](ir::Name n) {
    if (n) t.reads.emplace(n.str());
  };
  const auto write = [&](ir::Name n) {
    if (n) t.writes.emplace(n.str());
  };
  const auto change = [&](ir::Name n) {
    read(n);
    write(n);
  };
  switch (kind(op)) {
    case Kind::Set:
      return write(op.as<Set>().target);
    case Kind::Fold:
      return write(op.as<Fold>().target);
    case Kind::Reduce:
      return write(op.as<Reduce>().target);
    case Kind::Load:
      return write(op.as<Load>().target);
    case Kind::Convert:
      read(op.as<Convert>().source);
      return write(op.as<Convert>().target);
    case Kind::Lanes:
      return change(op.as<Lanes>().tile);
    case Kind::Shares:
      return change(op.as<Shares>().tile);
    case Kind::Warps:
      return change(op.as<Warps>().tile);
    case Kind::Groups:
      return change(op.as<Groups>().tile);
    case Kind::Ctas:
      return change(op.as<Ctas>().tile);
    case Kind::Dot: {
      const auto& d = op.as<Dot>();
      read(d.a);
      read(d.b);
      if (d.mode == DotMode::Add) read(d.acc);
      return write(d.acc);
    }
    case Kind::WarpDot:
      read(op.as<WarpDot>().a);
      read(op.as<WarpDot>().b);
      return write(op.as<WarpDot>().acc);
    case Kind::Take:
      read(op.as<Take>().slot_tile);
      return write(op.as<Take>().tile);
    case Kind::Fetch:
      return write(op.as<Fetch>().slot_tile);
    case Kind::Store:
      return read(op.as<Store>().tile);
    case Kind::Forget:
      return read(op.as<Forget>().tile);
    default:
      return;
  }
}

void touch(const Op& op, Touched& t) {
  touch_named(op, t);
  if (const ir::Block* inner = block_of(op)) {
    for (const Op& o : *inner) touch(o, t);
  }
  // Expressions of the op's own fields; those of inner ops come once more, which is harmless.
  ir::for_each_expr(op, [&](ir::Expr e) {
    for (ir::Name n : expr::tensors_read(e)) {
      if (n) t.reads.emplace(n.str());
    }
  });
}

}  // namespace

Touched touched_by(const Op& op) {
  Touched t;
  touch(op, t);
  return t;
}

Touched touched_by(const ir::Block& block) {
  Touched t;
  for (const Op& op : block) touch(op, t);
  return t;
}

std::map<std::string, Tile, std::less<>> declared_tiles(const Role& role) {
  std::map<std::string, Tile, std::less<>> tiles;
  for (const Op& op : role.body) {
    if (const auto* t = op.get<Tile>()) tiles.emplace(t->name.str(), *t);
  }
  return tiles;
}

Names names_of(const ir::Program& program) {
  Names names;
  ir::for_each_op(program.body, [&](const Op& op) {
    for (const Field& f : op.info().fields) {
      if (f.kind == FieldKind::Name) {
        if (const auto n = ir::field_value<ir::Name>(op.data(), f)) names.emplace(n.str());
      } else if (f.kind == FieldKind::AxisList) {
        for (const ir::Axis& a : ir::field_value<ir::Axes>(op.data(), f))
          names.emplace(a.name.str());
      }
    }
    ir::for_each_expr(op, [&](ir::Expr e) {
      expr::for_each(e, [&](ir::Expr x) {
        if (x.op() == expr::Op::Var || x.op() == expr::Op::Read) names.emplace(x.name().str());
      });
    });
  });
  return names;
}

ir::Name fresh_name(std::string_view base, Names& taken, expr::ExprPool& pool) {
  std::string name(base);
  for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
  return pool.name(name);
}

Op rename_tiles(const Op& op, const Renaming& renaming, expr::ExprPool& pool) {
  const Op mapped = ir::map_exprs(op, [&](ir::Expr e) {
    return expr::rebuild(pool, e, [&](ir::Expr x) {
      if (x.op() != expr::Op::Read) return x;
      const auto it = renaming.find(x.name().str());
      return it == renaming.end() ? x : pool.read(it->second, x.dtype(), x.args());
    });
  });
  auto data = ir::copy_data(mapped);
  for (const Field& f : mapped.info().fields) {
    if (f.kind == FieldKind::Name) {
      auto& name = ir::field_value<ir::Name>(data.get(), f);
      if (!name) continue;
      if (const auto it = renaming.find(name.str()); it != renaming.end()) name = it->second;
    } else if (f.kind == FieldKind::Body) {
      for (Op& inner : ir::field_value<ir::Block>(data.get(), f))
        inner = rename_tiles(inner, renaming, pool);
    }
  }
  return Op(mapped.info(), mapped.span(), std::move(data));
}

bool is_identity_read(ir::Expr read, const ir::Axes& axes) {
  if (read.op() != expr::Op::Read || read.args().size() != axes.size()) return false;
  for (size_t k = 0; k < axes.size(); ++k) {
    if (read[k].op() != expr::Op::Var || read[k].name() != axes[k].name) return false;
  }
  return true;
}

}  // namespace nautilus::matile
