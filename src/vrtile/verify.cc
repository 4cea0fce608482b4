// SPDX-License-Identifier: Apache-2.0
// Rules of the VR-tile level: tiles have static shapes and one definition, the shapes of products
// agree, what a loop carries keeps its type, and only loads and stores touch tensors.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

class VrtileVerifier {
 public:
  explicit VrtileVerifier(diag::Sink& sink) : v_(sink) {}

  void run(const ir::Block& ops) {
    for (const ir::Op& op : ops) {
      v_.set_op(op);
      top(op);
    }
  }

 private:
  enum class Place : uint8_t { Grid, Group, Loop };

  void top(const ir::Op& op) {
    switch (kind(op)) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
      case Kind::Target:
      case Kind::Machine:
      case Kind::Size:
        v_.check_decl(op);
        return;
      case Kind::Tensor:
        v_.check_type(op.as<Tensor>().type);
        v_.declare_tensor(op.as<Tensor>().name, op.as<Tensor>().type);
        roles_.emplace(op.as<Tensor>().name.str(), op.as<Tensor>().role);
        return;
      case Kind::Let:
        v_.check_closed(op.as<Let>().value, op.as<Let>().value.dtype(), "the value");
        v_.declare_var(op.as<Let>().name, op.as<Let>().value.dtype());
        return;
      case Kind::Par:
        if (op.as<Par>().kind != ParKind::Grid) v_.fail("a group outside a grid");
        return par(op, Place::Grid);
      case Kind::Decisions:
        v_.fail("decisions outside a kernel");
        return;
      case Kind::For:
      case Kind::Carry:
      case Kind::Load:
      case Kind::Set:
      case Kind::Reduce:
      case Kind::Dot:
      case Kind::Store:
        v_.fail("a tile op outside a grid");
    }
  }

  void par(const ir::Op& op, Place place) {
    const auto& p = op.as<Par>();
    if (p.kind == ParKind::Group) static_axes(p.axes);
    if (const ir::Expr cost = decision::cost_of(p.body))
      v_.check_dtype(cost, ir::DType::I64, "the cost");
    const size_t mark = v_.enter_axes(p.axes);
    block(p.body, place, op);
    v_.leave_axes(mark);
  }

  // Tiles of the block are forgotten at its end.
  void block(const ir::Block& ops, Place place, const ir::Op& around) {
    if (ops.empty()) v_.fail("the block is empty");
    std::vector<ir::Name> mine;
    std::swap(mine, tiles_);
    bool is_head = place == Place::Loop;
    for (const ir::Op& op : ops) {
      v_.set_op(op);
      if (op.is<Carry>() && !is_head) v_.fail("a carry that is not at the head of a loop");
      is_head &= op.is<Carry>();
      inner(op, place);
    }
    v_.set_op(around);
    if (place == Place::Loop) check_next(ops);
    for (ir::Name n : tiles_) v_.forget_tensor(n);
    for (ir::Name n : tiles_) is_tile_.erase(std::string(n.str()));
    std::swap(mine, tiles_);
  }

  void check_next(const ir::Block& ops) {
    for (const ir::Op& op : ops) {
      const auto* c = op.get<Carry>();
      if (!c) return;
      v_.set_op(op);
      const ir::TensorType* next = tile(c->next);
      if (next && !(*next == c->type)) {
        v_.fail(fmt::format("`{}` is {}, the next value `{}` is {}", c->name.str(),
                            ir::print(c->type), c->next.str(), ir::print(*next)));
      }
    }
  }

  void inner(const ir::Op& op, Place place) {
    tile_axes_.clear();
    switch (kind(op)) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
      case Kind::Target:
      case Kind::Machine:
      case Kind::Size:
      case Kind::Tensor:
        v_.fail("a declaration inside a grid");
        return;
      case Kind::Decisions:
        if (place != Place::Grid) v_.fail("decisions stand directly in the grid");
        return;
      case Kind::Let:
        number(op.as<Let>().value);
        v_.declare_local(op.as<Let>().name, op.as<Let>().value.dtype());
        return;
      case Kind::Par:
        if (op.as<Par>().kind == ParKind::Grid) v_.fail("a grid inside a grid");
        if (place != Place::Grid) v_.fail("a group stands directly in the grid");
        return par(op, Place::Group);
      case Kind::For:
        return loop(op);
      case Kind::Carry: {
        const auto& c = op.as<Carry>();
        const ir::TensorType* init = tile(c.init);
        if (init && !(*init == c.type)) {
          v_.fail(fmt::format("`{}` is {}, the first value `{}` is {}", c.name.str(),
                              ir::print(c.type), c.init.str(), ir::print(*init)));
        }
        return define(op);
      }
      case Kind::Load:
        return load(op);
      case Kind::Set: {
        const size_t mark = open(op.as<Set>().axes);
        value(op.as<Set>().value, "the value");
        v_.leave_axes(mark);
        return define(op);
      }
      case Kind::Reduce:
        return reduce(op);
      case Kind::Dot:
        return dot(op);
      case Kind::Store:
        return store(op.as<Store>());
    }
  }

  void loop(const ir::Op& op) {
    const auto& loop = op.as<For>();
    for (Expr e : {loop.from, loop.to}) {
      value(e, "a bound");
      v_.check_dtype(e, DType::I64, "a bound");
    }
    const size_t mark = v_.mark();
    v_.declare_local(loop.var, DType::I64);
    block(loop.body, Place::Loop, op);
    v_.leave_axes(mark);
    // Carried values can be read after the loop.
    for (const ir::Op& inner : loop.body) {
      if (inner.is<Carry>()) define(inner);
    }
  }

  void load(const ir::Op& op) {
    const auto& l = op.as<Load>();
    const size_t mark = open(l.axes);
    if (l.value.op() != EK::Read || !roles_.contains(std::string(l.value.name().str()))) {
      v_.fail("a load takes an element of a tensor");
    } else {
      v_.check(l.value, "the load");
      for (Expr i : l.value.args()) value(i, "an index");
    }
    if (!l.condition != !l.other) v_.fail("`when` and `else` go together");
    if (l.condition) {
      value(l.condition, "the condition");
      v_.check_dtype(l.condition, DType::Bool, "the condition");
    }
    if (l.other) {
      value(l.other, "the other value");
      v_.check_dtype(l.other, l.value.dtype(), "the other value");
    }
    v_.leave_axes(mark);
    define(op);
  }

  void reduce(const ir::Op& op) {
    const auto& r = op.as<Reduce>();
    const size_t mark = open(r.axes);
    if (r.value.op() != EK::Reduce) {
      v_.fail("the value is no reduction");
    } else {
      if (r.value.init()) v_.fail("the reduction starts from its identity");
      if (is_arg(r.value.reducer()))
        v_.fail(fmt::format("{} is no reduction of tiles", name(r.value.reducer())));
      ir::Axes axes;
      for (size_t k = 0; k < r.value.axis_count(); ++k)
        axes.push_back({r.value.axis(k).name(), r.value.extent(k)});
      const size_t inside = open(axes);
      value(r.value.body(), "the value");
      v_.leave_axes(inside);
    }
    v_.leave_axes(mark);
    define(op);
  }

  void dot(const ir::Op& op) {
    const auto& d = op.as<Dot>();
    const ir::TensorType* a = tile(d.a);
    const ir::TensorType* b = tile(d.b);
    if (!a || !b) return define(op);
    if (a->dims.size() != 2 || b->dims.size() != 2 || d.type.dims.size() != 2) {
      v_.fail("a product takes and gives tiles with two axes");
      return define(op);
    }
    const auto are = [&](bool (*is_kind)(DType)) {
      return is_kind(a->dtype) && is_kind(b->dtype) && is_kind(d.type.dtype);
    };
    if (!are([](DType t) { return expr::is_float(t); }) &&
        !are([](DType t) { return expr::is_int(t); }))
      v_.fail("a product of tiles that are neither all floats nor all integers");
    const bool is_trans = d.trans == Trans::Yes;
    const Expr columns = b->dims[is_trans ? 0 : 1];
    if (a->dims[1] != b->dims[is_trans ? 1 : 0] || d.type.dims[0] != a->dims[0] ||
        d.type.dims[1] != columns) {
      v_.fail(fmt::format("{} times {}{} is not {}", ir::print(*a), ir::print(*b),
                          is_trans ? " trans" : "", ir::print(d.type)));
    }
    const ir::TensorType* acc = d.acc ? tile(d.acc) : nullptr;
    if (acc && !(*acc == d.type)) {
      v_.fail(fmt::format("`{}` is {}, the product {}", d.acc.str(), ir::print(*acc),
                          ir::print(d.type)));
    }
    define(op);
  }

  void store(const Store& s) {
    const size_t mark = open(s.axes);
    const ir::TensorType* type = v_.tensor(s.target);
    const auto role = roles_.find(s.target.str());
    if (!type || role == roles_.end()) {
      v_.fail(fmt::format("`{}` is no tensor", s.target.str()));
    } else {
      if (role->second == TensorRole::Input)
        v_.fail(fmt::format("the input `{}` is written", s.target.str()));
      if (type->dims.size() != s.indices.size()) {
        v_.fail(fmt::format("`{}` has {}, {} given", s.target.str(),
                            diag::counted(type->dims.size(), "dimension", "dimensions"),
                            diag::counted(s.indices.size(), "index is", "indices are")));
      }
      v_.check_dtype(s.value, type->dtype, "the value");
    }
    for (Expr i : s.indices) value(i, "an index");
    value(s.value, "the value");
    if (s.condition) {
      value(s.condition, "the condition");
      v_.check_dtype(s.condition, DType::Bool, "the condition");
    }
    v_.leave_axes(mark);
  }

  // An expression of tiles, scalars and coordinates.
  void value(Expr e, std::string_view what) {
    v_.check(e, what);
    if (expr::has_reduce(e)) v_.fail(fmt::format("a reduction inside {}", what));
    expr::for_each(e, [&](Expr x) {
      if (x.op() == EK::Read && roles_.contains(std::string(x.name().str())) && !is_scalar(x))
        v_.fail(fmt::format("{} reads the tensor `{}`; `load` does that", what, x.name().str()));
    });
  }

  // An integer that is the same for the whole tile: what a `let` may read may be written out.
  bool is_scalar(Expr read) {
    if (!expr::is_int(read.dtype())) return false;
    if (roles_.find(std::string(read.name().str()))->second == TensorRole::Output) return false;
    return std::none_of(read.args().begin(), read.args().end(), [&](Expr index) {
      bool has_axis = false;
      expr::for_each(index, [&](Expr x) {
        has_axis |= x.op() == EK::Var && tile_axes_.contains(std::string(x.name().str()));
        has_axis |= x.op() == EK::Read && is_tile_.contains(std::string(x.name().str()));
      });
      return has_axis;
    });
  }

  // Integers may be read from tensors: how far loops run can be a matter of data.
  void number(Expr e) {
    if (!expr::is_int(e.dtype())) return value(e, "the value");
    v_.check(e, "the value");
    if (expr::has_reduce(e)) v_.fail("a reduction inside the value");
    for (ir::Name n : expr::tensors_read(e)) {
      const auto role = roles_.find(std::string(n.str()));
      if (role == roles_.end())
        v_.fail(fmt::format("a scalar reads the tile `{}`", n.str()));
      else if (role->second == TensorRole::Output)
        v_.fail(fmt::format("a scalar reads the output `{}`", n.str()));
    }
  }

  size_t open(const ir::Axes& axes) {
    static_axes(axes);
    for (const ir::Axis& a : axes) tile_axes_.emplace(a.name.str());
    return v_.enter_axes(axes);
  }

  void static_axes(const ir::Axes& axes) {
    for (const ir::Axis& a : axes) {
      if (a.extent.op() != EK::IntConst || a.extent.integer() < 1)
        v_.fail(fmt::format("the extent of `{}` is no positive constant", a.name.str()));
    }
  }

  const ir::TensorType* tile(ir::Name name) {
    const ir::TensorType* type = v_.tensor(name);
    if (type && is_tile_.contains(std::string(name.str()))) return type;
    v_.fail(fmt::format("there is no tile `{}`", name.str()));
    return nullptr;
  }

  void define(const ir::Op& op) {
    const ir::Name name = defined(op);
    const ir::TensorType type = type_of(op);
    for (Expr d : type.dims) {
      if (d.op() != EK::IntConst || d.integer() < 1)
        v_.fail(fmt::format("the shape of `{}` is not constant", name.str()));
    }
    if (!v_.declare_tensor(name, type)) return;
    tiles_.push_back(name);
    is_tile_.emplace(name.str());
  }

  ir::Verifier v_;
  std::map<std::string, TensorRole, std::less<>> roles_;
  std::vector<ir::Name> tiles_;  // of the block that is open
  std::set<std::string> is_tile_;
  std::set<std::string> tile_axes_;  // of the op
};

}  // namespace

bool verify(const ir::Program& program, diag::Sink& sink) {
  const size_t before = sink.all().size();
  VrtileVerifier(sink).run(program.body);
  return sink.all().size() == before;
}

}  // namespace nautilus::vrtile
