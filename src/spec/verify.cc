// SPDX-License-Identifier: Apache-2.0
// Rules of the spec level: names, types, and what a scan may read before it is defined.
#include <fmt/format.h>

#include <set>

#include "decision/lines.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/verify.h"
#include "spec/ops.h"

namespace nautilus::spec {
namespace {

using expr::Expr;

class SpecVerifier {
 public:
  SpecVerifier(const ir::Program& program, diag::Sink& sink)
      // Tensor names are reserved everywhere, also before their definition: lower levels declare
      // all storage first.
      : tensors_(tensor_types(program)), sink_(sink), v_(sink) {}

  void run(const ir::Program& program) {
    for (const ir::Op& op : program.body) {
      v_.set_op(op);
      visit(op);
    }
    for (const auto& [name, state] : states_)
      v_.fail(fmt::format("the state `{}` has no equation", name));
  }

 private:
  void visit(const ir::Op& op) {
    switch (kind(op)) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
      case Kind::Target:
        v_.check_decl(op);
        return;
      case Kind::Decisions:
        return decisions(op.as<Decisions>());
      case Kind::Input:
        v_.check_type(op.as<Input>().type);
        v_.declare_tensor(op.as<Input>().name, op.as<Input>().type);
        inputs_.emplace(op.as<Input>().name.str());
        return;
      case Kind::State:
        return state(op.as<State>());
      case Kind::Let:
        return equation(op.as<Let>());
      case Kind::Output:
        return output(op.as<Output>());
    }
  }

  // Of the lines about a program the passes of this level read those about operands.
  void decisions(const Decisions& lines) {
    if (has_decisions_) v_.fail("a program has one list of decisions");
    has_decisions_ = true;
    for (const ir::Op& line : lines.body) {
      if (!decision::is_about_equations(line))
        v_.fail(fmt::format("`{}` is no decision about equations", line.info().mnemonic()));
    }
  }

  void state(const State& state) {
    v_.check_type(state.type);
    if (state.along() >= state.type.dims.size())
      return v_.fail(fmt::format("`{}` has no dimension {}", state.name.str(), state.along()));
    if (v_.declare_tensor(state.name, state.type))
      states_.emplace(std::string(state.name.str()), state);
  }

  void check_axis(ir::Name name) {
    if (tensors_.contains(std::string(name.str())))
      v_.fail(fmt::format("the axis `{}` has the name of a tensor", name.str()));
  }

  void declare(const Let& let) {
    const auto state = states_.find(std::string(let.name.str()));
    if (state == states_.end()) {
      v_.declare_tensor(let.name, let.type());
      return;
    }
    if (state->second.type != let.type())
      v_.fail(fmt::format("the equation of `{}` has another type than the state", let.name.str()));
    states_.erase(state);
  }

  void equation(const Let& let) {
    const size_t reported = sink_.all().size();
    for (const ir::Axis& a : let.axes) check_axis(a.name);
    expr::for_each(let.body, [&](Expr e) {
      if (e.op() != expr::Op::Reduce) return;
      for (size_t k = 0; k < e.axis_count(); ++k) check_axis(e.axis(k).name());
    });
    if (sink_.all().size() == reported) {
      const size_t mark = v_.enter_axes(let.axes);
      v_.check(let.body, "the body");
      v_.check_dtype(let.body, let.dtype, "the body");
      v_.leave_axes(mark);
      if (!states_.empty() && sink_.all().size() == reported) check_steps(let);
    }
    declare(let);
  }

  // A tensor that is not defined yet is read at the previous step, along an axis of the equation.
  void check_steps(const Let& let) {
    expr::for_each(let.body, [&](Expr e) {
      if (e.op() != expr::Op::Read) return;
      const auto it = states_.find(std::string(e.name().str()));
      if (it == states_.end()) return;
      const State& state = it->second;
      const auto index = expr::Poly::of(e[state.along()]);
      const auto axis =
          index ? expr::plus(*index, state.direction == Direction::Up ? 1 : -1) : std::nullopt;
      bool is_step = false;
      for (const ir::Axis& a : let.axes) {
        const bool is_it = axis && axis->terms().size() == 1 &&
                           axis->terms().begin()->second == 1 &&
                           axis->terms().begin()->first.size() == 1 &&
                           axis->terms().begin()->first[0].op() == expr::Op::Var &&
                           axis->terms().begin()->first[0].name() == a.name;
        is_step |= is_it;
      }
      if (!is_step)
        v_.fail(fmt::format("`{}` is read before it is defined, not at the step before",
                            e.name().str()));
    });
  }

  void output(const Output& output) {
    const std::string name(output.name.str());
    if (!v_.tensor(output.name)) v_.fail(fmt::format("`{}` is not defined", name));
    if (inputs_.contains(name))
      v_.fail(fmt::format("`{}` is an input; an output is defined by an equation", name));
    if (!handed_over_.insert(name).second) v_.fail(fmt::format("`{}` is an output already", name));
  }

  const std::map<std::string, ir::TensorType> tensors_;
  diag::Sink& sink_;
  ir::Verifier v_;
  std::set<std::string> handed_over_;
  std::set<std::string> inputs_;
  bool has_decisions_ = false;
  std::map<std::string, State> states_;  // without an equation so far
};

}  // namespace

bool verify(const ir::Program& program, diag::Sink& sink) {
  const size_t before = sink.all().size();
  SpecVerifier(program, sink).run(program);
  return sink.all().size() == before;
}

}  // namespace nautilus::spec
