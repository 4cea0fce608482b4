// SPDX-License-Identifier: Apache-2.0
#include "vrtile/interp.h"

#include "expr/walk.h"
#include "ir/walk.h"
#include "vrtile/names.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Axes;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

class Translator {
 public:
  Translator(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), names_(program.body, pool) {
    ir::for_each_op(program.body, [&](const Op& op) {
      if (const auto* loop = op.get<For>()) variables_.insert(loop->var);
      for (const ir::Field& f : op.info().fields) {
        if (f.kind != ir::FieldKind::AxisList) continue;
        for (const ir::Axis& a : ir::field_value<Axes>(op.data(), f)) variables_.insert(a.name);
      }
      if (const auto* r = op.get<Reduce>()) {
        for (size_t k = 0; k < r->value.axis_count(); ++k)
          variables_.insert(r->value.axis(k).name());
      }
    });
  }

  ir::Program run(const ir::Program& program) {
    Block kernels;
    for (const Op& op : program.body) {
      if (const auto* t = op.get<Tensor>()) {
        const scalar::Role role = t->role == TensorRole::Input    ? scalar::Role::Input
                                  : t->role == TensorRole::Output ? scalar::Role::Output
                                                                  : scalar::Role::Temp;
        out_.push_back(ir::make(scalar::Buffer{t->name, t->type, role}, op.span()));
      } else if (op.is<Let>() || op.is<Par>()) {
        visit(op, kernels);
      } else {
        out_.push_back(op);
      }
    }
    out_.insert(out_.end(), kernels.begin(), kernels.end());
    return {&scalar::level(), program.name, std::move(out_)};
  }

 private:
  void visit(const Op& op, Block& out) {
    switch (kind(op)) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
      case Kind::Target:
      case Kind::Machine:
      case Kind::Size:
      case Kind::Decisions:
      case Kind::Tensor:
      case Kind::Carry:
        return;
      case Kind::Let:
        lets_.insert_or_assign(pool_.var(op.as<Let>().name, op.as<Let>().value.dtype()),
                               resolved(op.as<Let>().value));
        return;
      case Kind::Par: {
        const auto& p = op.as<Par>();
        Axes axes = p.axes;
        for (ir::Axis& a : axes) a.extent = resolved(a.extent);
        const auto kind =
            p.kind == ParKind::Grid ? scalar::LoopKind::Grid : scalar::LoopKind::Group;
        out.push_back(ir::make(scalar::For{axes, kind, block(p.body)}, op.span()));
        return;
      }
      case Kind::For:
        return loop(op, out);
      case Kind::Load: {
        const auto& l = op.as<Load>();
        const Expr read = resolved(l.value);
        element(op, l.axes,
                l.condition ? pool_.select(resolved(l.condition), read, resolved(l.other)) : read,
                out);
        return;
      }
      case Kind::Set:
        return element(op, op.as<Set>().axes, resolved(op.as<Set>().value), out);
      case Kind::Reduce:
        return reduce(op, out);
      case Kind::Dot:
        return dot(op, out);
      case Kind::Store: {
        const auto& s = op.as<Store>();
        ir::Exprs indices;
        for (Expr i : s.indices) indices.push_back(resolved(i));
        Op write = ir::make(scalar::Store{s.target, indices, resolved(s.value)}, op.span());
        if (s.condition) write = ir::make(scalar::If{resolved(s.condition), {write}}, op.span());
        out.push_back(nest(s.axes, {write}, op));
        return;
      }
    }
  }

  Block block(const Block& ops) {
    Block out;
    for (const Op& op : ops) visit(op, out);
    return out;
  }

  void loop(const Op& op, Block& out) {
    const auto& loop = op.as<For>();
    std::vector<std::pair<const Carry*, Name>> carries;
    for (const Op& inner : loop.body) {
      const auto* c = inner.get<Carry>();
      if (!c) break;
      carries.emplace_back(c, buffer(inner));
    }
    // Buffers of the first values were chosen before; two carries never share one.
    for (const auto& [c, target] : carries) copy(c->type, buffers_.at(c->init), target, op, out);
    Block body = block(loop.body);
    std::vector<std::pair<Name, Name>> staged;  // target, value
    for (const auto& [c, target] : carries) {
      Name value = buffers_.at(c->next);
      for (const auto& [other, changed] : carries) {
        if (value != changed || other == c) continue;
        // The value changes in this step too: it is saved first.
        const Name aside = names_.fresh(std::string(c->name.str()) + "_aside");
        declare(aside, c->type);
        copy(c->type, value, aside, op, body);
        value = aside;
        break;
      }
      staged.emplace_back(target, value);
    }
    for (size_t k = 0; k < carries.size(); ++k)
      copy(carries[k].first->type, staged[k].second, staged[k].first, op, body);
    const auto direction =
        loop.direction == Direction::Up ? scalar::Direction::Up : scalar::Direction::Down;
    out.push_back(ir::make(
        scalar::Loop{loop.var, resolved(loop.from), direction, resolved(loop.to), std::move(body)},
        op.span()));
  }

  void reduce(const Op& op, Block& out) {
    const auto& r = op.as<Reduce>();
    const Expr value = resolved(r.value);
    const Name target = buffer(op);
    Axes inner;
    for (size_t k = 0; k < value.axis_count(); ++k)
      inner.push_back({value.axis(k).name(), value.extent(k)});
    const expr::DType dtype = value.dtype();
    const expr::Value identity = expr::identity(value.reducer(), dtype);
    const Expr start = dtype == expr::DType::Bool ? pool_.boolean(identity.i != 0)
                       : is_float(dtype)          ? pool_.floating(identity.f, dtype)
                                                  : pool_.integer(identity.i, dtype);
    const ir::Exprs indices = points(r.axes);
    const Op update =
        ir::make(scalar::Update{target, indices, value.reducer(), value.body()}, op.span());
    out.push_back(
        nest(r.axes,
             {ir::make(scalar::Init{target, indices, start}, op.span()),
              ir::make(scalar::For{inner, scalar::LoopKind::Reduce, {update}}, op.span())},
             op));
  }

  void dot(const Op& op, Block& out) {
    const auto& d = op.as<Dot>();
    if (!row_) {
      row_ = pool_.index(names_.fresh("row"));
      col_ = pool_.index(names_.fresh("col"));
      depth_ = pool_.index(names_.fresh("depth"));
    }
    const Tile& a = tiles_.at(buffers_.at(d.a));
    const Tile& b = tiles_.at(buffers_.at(d.b));
    auto read = [&](const Tile& t, Expr x, Expr y) {
      const Expr at[] = {x, y};
      return pool_.read(t.name, t.type.dtype, at);
    };
    auto converted = [&](Expr e) {
      return e.dtype() == d.type.dtype ? e : pool_.cast(d.type.dtype, e);
    };
    const Expr x = converted(read(a, row_, depth_));
    const Expr y = converted(d.trans == Trans::Yes ? read(b, col_, depth_) : read(b, depth_, col_));
    const Expr start =
        d.acc ? read(tiles_.at(buffers_.at(d.acc)), row_, col_) : pool_.constant(0, d.type.dtype);
    const Name target = buffer(op);
    const ir::Exprs at = {row_, col_};
    const Op update = ir::make(
        scalar::Update{target, at, expr::Reducer::Sum, pool_.binary(EK::Mul, x, y)}, op.span());
    const Axes axes = {{row_.name(), d.type.dims[0]}, {col_.name(), d.type.dims[1]}};
    const Axes inner = {{depth_.name(), a.type.dims[1]}};
    out.push_back(
        nest(axes,
             {ir::make(scalar::Init{target, at, start}, op.span()),
              ir::make(scalar::For{inner, scalar::LoopKind::Reduce, {update}}, op.span())},
             op));
  }

  void element(const Op& op, const Axes& axes, Expr value, Block& out) {
    const Name target = buffer(op);
    out.push_back(nest(axes, {ir::make(scalar::Store{target, points(axes), value})}, op));
  }

  void copy(const ir::TensorType& type, Name from, Name to, const Op& op, Block& out) {
    if (from == to) return;
    Axes axes;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      if (copy_axes_.size() == k) copy_axes_.push_back(names_.fresh("copied"));
      axes.push_back({copy_axes_[k], type.dims[k]});
    }
    const ir::Exprs at = points(axes);
    out.push_back(
        nest(axes, {ir::make(scalar::Store{to, at, pool_.read(from, type.dtype, at)})}, op));
  }

  // Without axes there is nothing to loop over.
  static Op nest(const Axes& axes, Block body, const Op& op) {
    if (axes.empty() && body.size() == 1) return body[0];
    if (axes.empty()) return ir::make(scalar::For{{}, scalar::LoopKind::Map, body}, op.span());
    return ir::make(scalar::For{axes, scalar::LoopKind::Map, std::move(body)}, op.span());
  }

  ir::Exprs points(const Axes& axes) {
    ir::Exprs out;
    for (const ir::Axis& a : axes) out.push_back(pool_.index(a.name));
    return out;
  }

  // Names of tiles, which neighbouring blocks may share, to names of buffers; lets to values.
  Expr resolved(Expr e) {
    return expr::rebuild(pool_, e, [&](Expr x) {
      if (x.op() == EK::Var) {
        const auto it = lets_.find(x);
        return it == lets_.end() ? x : it->second;
      }
      if (x.op() != EK::Read) return x;
      const auto it = buffers_.find(x.name());
      return it == buffers_.end() ? x : pool_.read(it->second, x.dtype(), x.args());
    });
  }

  struct Tile {
    Name name;
    ir::TensorType type;
  };

  Name buffer(const Op& op) {
    const Name tile = defined(op);
    const ir::TensorType type = type_of(op);
    Name name = tile;
    const auto it = tiles_.find(name);
    const bool is_other = it != tiles_.end() && !(it->second.type == type);
    if (is_other || variables_.contains(name)) name = names_.fresh(tile.str());
    declare(name, type);
    buffers_.insert_or_assign(tile, name);
    return name;
  }

  void declare(Name name, const ir::TensorType& type) {
    if (!tiles_.emplace(name, Tile{name, type}).second) return;
    out_.push_back(ir::make(scalar::Buffer{name, type, scalar::Role::Local}));
  }

  expr::ExprPool& pool_;
  Names names_;
  Block out_;
  std::unordered_map<Name, Tile> tiles_;    // by buffer
  std::unordered_map<Name, Name> buffers_;  // tile to buffer
  expr::Substitution lets_;
  std::unordered_set<Name>
      variables_;  // at this level a tile may have the name of an axis elsewhere
  std::vector<Name> copy_axes_;
  Expr row_, col_, depth_;
};

}  // namespace

ir::Program to_scalar(const ir::Program& program, expr::ExprPool& pool) {
  return Translator(program, pool).run(program);
}

std::optional<std::map<std::string, expr::Tensor>> interpret(const ir::Program& program,
                                                             const ir::Environment& env,
                                                             scalar::Arithmetic arithmetic,
                                                             expr::ExprPool& pool,
                                                             diag::Sink& sink) {
  const ir::Program lowered = to_scalar(program, pool);
  const bool ok = scalar::verify(lowered, sink);
  NAUT_CHECK(ok, "the scalar form of @{} does not verify: {}", program.name,
             sink.all().back().message);
  return scalar::interpret(lowered, env, arithmetic, sink);
}

}  // namespace nautilus::vrtile
