// SPDX-License-Identifier: Apache-2.0
#include "spec/ops.h"

#include <set>

#include <fmt/format.h>

#include "expr/walk.h"
#include "ir/verify.h"

namespace nautilus::spec {

NAUT_DEFINE_OP(Input)
NAUT_DEFINE_OP(Let)
NAUT_DEFINE_OP(Output)

ir::TensorType Let::type() const {
  ir::TensorType t{dtype, {}};
  for (const ir::Axis& a : axes) t.dims.push_back(a.extent);
  return t;
}

const ir::Level& level() {
  static const ir::Level kLevel{"spec",
                                ".spec",
                                {
#define OP(name) &name::info(),
#include "spec/ops.def"
#undef OP
                                },
                                [](const ir::Op& op, expr::Scope& scope) {
                                  if (ir::declare_decl(op, scope)) return;
                                  if (const auto* input = op.get<Input>()) {
                                    scope.add_tensor(input->name.str(), input->type.dtype,
                                                     input->type.dims.size());
                                  } else if (const auto* let = op.get<Let>()) {
                                    scope.add_tensor(let->name.str(), let->dtype, let->axes.size());
                                  }
                                }};
  return kLevel;
}

Kind kind(const ir::Op& op) { return static_cast<Kind>(level().position_of(op)); }

std::map<std::string, ir::TensorType> tensor_types(const ir::Program& program) {
  std::map<std::string, ir::TensorType> types;
  for (const ir::Op& op : program.body) {
    if (const auto* input = op.get<Input>()) types.emplace(input->name.str(), input->type);
    if (const auto* let = op.get<Let>()) types.emplace(let->name.str(), let->type());
  }
  return types;
}

std::vector<ir::Name> outputs(const ir::Program& program) {
  std::vector<ir::Name> names;
  for (const ir::Op& op : program.body) {
    if (const auto* output = op.get<Output>()) names.push_back(output->name);
  }
  return names;
}

std::vector<expr::DType> output_dtypes(const ir::Program& program) {
  const auto types = tensor_types(program);
  std::vector<expr::DType> dtypes;
  for (ir::Name n : outputs(program)) dtypes.push_back(types.at(std::string(n.str())).dtype);
  return dtypes;
}

bool verify(const ir::Program& program, diag::Sink& sink) {
  ir::Verifier v(sink);
  std::set<std::string> handed_over;
  std::set<std::string> inputs;
  const size_t before = sink.all().size();
  // Tensor names are taken everywhere, also before their definition: lower levels declare all
  // storage first.
  const auto tensors = tensor_types(program);
  auto check_axis = [&](ir::Name name) {
    if (tensors.contains(std::string(name.str()))) {
      v.fail(fmt::format("the axis `{}` has the name of a tensor", name.str()));
    }
  };
  for (const ir::Op& op : program.body) {
    v.set_op(op);
    switch (kind(op)) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
      case Kind::Target:
        v.check_decl(op);
        break;
      case Kind::Input: {
        const auto& input = op.as<Input>();
        v.check_type(input.type);
        v.declare_tensor(input.name, input.type);
        inputs.emplace(input.name.str());
        break;
      }
      case Kind::Let: {
        const auto& let = op.as<Let>();
        const size_t reported = sink.all().size();
        for (const ir::Axis& a : let.axes) check_axis(a.name);
        expr::for_each(let.body, [&](ir::Expr e) {
          if (e.op() != expr::Op::Reduce) return;
          for (size_t k = 0; k < e.axis_count(); ++k) check_axis(e.axis(k).name());
        });
        if (sink.all().size() != reported) {
          v.declare_tensor(let.name, let.type());
          break;
        }
        const size_t mark = v.enter_axes(let.axes);
        v.check(let.body, "the body");
        v.check_dtype(let.body, let.dtype, "the body");
        v.leave_axes(mark);
        v.declare_tensor(let.name, let.type());
        break;
      }
      case Kind::Output: {
        const auto& output = op.as<Output>();
        if (!v.tensor(output.name)) v.fail(fmt::format("`{}` is not defined", output.name.str()));
        if (inputs.contains(std::string(output.name.str()))) {
          v.fail(fmt::format("`{}` is an input; an output is defined by an equation",
                             output.name.str()));
        }
        if (!handed_over.emplace(output.name.str()).second) {
          v.fail(fmt::format("`{}` is an output already", output.name.str()));
        }
        break;
      }
    }
  }
  return sink.all().size() == before;
}

}  // namespace nautilus::spec
