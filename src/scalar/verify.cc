// SPDX-License-Identifier: Apache-2.0
// Rules of the scalar level: writes fit their buffers, inputs are never written, updates are in
// reduce loops and combine with an init, nothing is read before it is written.
#include <fmt/format.h>

#include <map>
#include <set>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/verify.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::scalar {
namespace {

class ScalarVerifier {
 public:
  ScalarVerifier(diag::Sink& sink) : v_(sink) {}

  void block(const ir::Block& ops) {
    for (const ir::Op& op : ops) visit(op);
  }

 private:
  void visit(const ir::Op& op) {
    v_.set_op(op);
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
        if (depth_ > 0) v_.fail("a declaration inside a loop");
        break;
      case Kind::Decisions:
        if (!is_in_grid_) v_.fail("decisions outside a kernel");
        break;
      case Kind::Kernel:
        if (depth_ > 0) v_.fail("the lines of a kernel inside a loop");
        if (op.as<Kernel>().form == decision::Form::Tile)
          v_.fail("the lines of a tile kernel stand in its nest");
        break;
      case Kind::Buffer:
        return buffer(op.as<Buffer>());
      case Kind::Loop:
        return loop(op, op.as<Loop>());
      case Kind::If:
        v_.check_dtype(op.as<If>().condition, ir::DType::Bool, "the condition");
        read(op.as<If>().condition);
        inside(op.as<If>().body, op);
        break;
      case Kind::For:
        return loops(op, op.as<For>());
      case Kind::Store:
        return store(op.as<Store>());
      case Kind::Init:
        store(op.as<Init>());
        started_.emplace(op.as<Init>().target.str());
        return;
      case Kind::Update:
        return update(op.as<Update>());
      case Kind::UpdateArg:
        return update_arg(op.as<UpdateArg>());
      case Kind::Scatter:
        return scatter(op.as<Scatter>());
    }
  }

  void buffer(const Buffer& b) {
    v_.check_type(b.type);
    v_.declare_tensor(b.name, b.type);
    roles_.emplace(b.name.str(), b.role);
    if (b.role == Role::Input) written_.emplace(b.name.str());
    if (depth_ > 0) v_.fail("a buffer inside a loop");
  }

  void loop(const ir::Op& op, const Loop& loop) {
    v_.check_dtype(loop.from, ir::DType::I64, "the first value");
    v_.check_dtype(loop.to, ir::DType::I64, "the last value");
    read(loop.from);
    read(loop.to);
    // The steps of a scan read what those before have written.
    if (depth_ == 0) {
      ir::for_each_op(loop.body, [&](const ir::Op& o) {
        if (const auto* s = o.get<Store>()) written_.emplace(s->target.str());
        if (const auto* i = o.get<Init>()) written_.emplace(i->target.str());
      });
    }
    const size_t mark = v_.mark();
    v_.declare_local(loop.var, ir::DType::I64);
    inside(loop.body, op);
    v_.leave_axes(mark);
  }

  void loops(const ir::Op& op, const For& loop) {
    if (loop.kind == LoopKind::Grid && depth_ > 0) v_.fail("a grid loop inside a loop");
    if (loop.kind == LoopKind::Group && !is_in_grid_) v_.fail("a group loop outside a grid");
    if (const ir::Expr cost = decision::cost_of(loop.body))
      v_.check_dtype(cost, ir::DType::I64, "the cost");
    const size_t mark = v_.enter_axes(loop.axes);
    const bool was_in_grid = is_in_grid_;
    is_in_grid_ = loop.kind == LoopKind::Grid || (is_in_grid_ && loop.kind != LoopKind::Group);
    reduce_depth_ += loop.kind == LoopKind::Reduce ? 1 : 0;
    inside(loop.body, op);
    reduce_depth_ -= loop.kind == LoopKind::Reduce ? 1 : 0;
    is_in_grid_ = was_in_grid;
    v_.leave_axes(mark);
  }

  // A store or an init.
  template <typename T>
  void store(const T& s) {
    read(s.value);
    target(s.target, s.indices, s.value.dtype());
  }

  void update(const Update& u) {
    if (is_arg(u.reducer)) v_.fail(fmt::format("{} needs update_arg", name(u.reducer)));
    read(u.value);
    accumulate(u.target, u.indices, u.value.dtype());
  }

  void update_arg(const UpdateArg& u) {
    if (!is_arg(u.reducer))
      v_.fail(fmt::format("update_arg takes argmax or argmin, not {}", name(u.reducer)));
    read(u.value);
    read(u.position);
    accumulate(u.target, u.indices, ir::DType::I64);
    accumulate(u.best, u.indices, u.value.dtype());
  }

  void scatter(const Scatter& s) {
    if (is_arg(s.reducer) || s.reducer == expr::Reducer::Prod)
      v_.fail(fmt::format("nothing scatters by {}", name(s.reducer)));
    if (s.condition) {
      v_.check_dtype(s.condition, ir::DType::Bool, "the condition");
      read(s.condition);
    }
    read(s.value);
    if (!written_.contains(std::string(s.target.str())))
      v_.fail(fmt::format("nothing writes what `{}` begins with", s.target.str()));
    for (ir::Name n : expr::tensors_read(s.value)) {
      if (n == s.target) v_.fail(fmt::format("the value reads `{}`, which scatters", n.str()));
    }
    target(s.target, s.indices, s.value.dtype());
  }

  void inside(const ir::Block& body, const ir::Op& op) {
    if (body.empty()) v_.fail("the block is empty");
    ++depth_;
    block(body);
    --depth_;
    v_.set_op(op);
  }

  void read(ir::Expr e) {
    v_.check(e, "the value");
    if (expr::has_reduce(e)) v_.fail("a reduction inside an expression; this level has loops");
    for (ir::Name n : expr::tensors_read(e)) {
      if (!written_.contains(std::string(n.str())))
        v_.fail(fmt::format("`{}` is read before it is written", n.str()));
    }
  }

  void target(ir::Name name, const ir::Exprs& indices, ir::DType dtype) {
    const ir::TensorType* type = v_.tensor(name);
    if (!type) return v_.fail(fmt::format("`{}` is no buffer", name.str()));
    if (roles_[std::string(name.str())] == Role::Input)
      v_.fail(fmt::format("the input `{}` is written", name.str()));
    if (type->dims.size() != indices.size()) {
      v_.fail(fmt::format("`{}` has {}, {} given", name.str(),
                          diag::counted(type->dims.size(), "dimension", "dimensions"),
                          diag::counted(indices.size(), "index is", "indices are")));
    }
    if (type->dtype != dtype) {
      v_.fail(fmt::format("`{}` holds {}, the value is {}", name.str(), expr::name(type->dtype),
                          expr::name(dtype)));
    }
    for (ir::Expr i : indices) read(i);
    written_.emplace(name.str());
  }

  void accumulate(ir::Name name, const ir::Exprs& indices, ir::DType dtype) {
    if (reduce_depth_ == 0) v_.fail("an update outside a reduce loop");
    if (!started_.contains(std::string(name.str())))
      v_.fail(fmt::format("no init starts `{}`", name.str()));
    target(name, indices, dtype);
  }

  ir::Verifier v_;
  int depth_ = 0;
  int reduce_depth_ = 0;
  bool is_in_grid_ = false;  // A grid loop is open, and no group loop inside it.
  std::map<std::string, Role> roles_;
  std::set<std::string> written_;
  std::set<std::string> started_;
};

}  // namespace

bool verify(const ir::Program& program, diag::Sink& sink) {
  const size_t before = sink.all().size();
  ScalarVerifier(sink).block(program.body);
  return sink.all().size() == before;
}

}  // namespace nautilus::scalar
