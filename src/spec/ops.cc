// SPDX-License-Identifier: Apache-2.0
#include "spec/ops.h"

namespace nautilus::spec {

NAUT_DEFINE_OP(Input)
NAUT_DEFINE_OP(State)
NAUT_DEFINE_OP(Let)
NAUT_DEFINE_OP(Output)

const std::vector<std::string_view>& words(Direction) {
  static const std::vector<std::string_view> kWords = {"up", "down"};
  return kWords;
}

ir::TensorType Let::type() const {
  ir::TensorType t{dtype, {}};
  for (const ir::Axis& a : axes) t.dims.push_back(a.extent);
  return t;
}

const ir::Level& level() {
  static const ir::Level kLevel{
      "spec",
      ".spec",
      {
#define OP(name) &name::info(),
#include "spec/ops.def"
#undef OP
      },
      [](const ir::Op& op, expr::Scope& scope) {
        if (ir::declare_decl(op, scope)) return;
        if (const auto* input = op.get<Input>()) {
          scope.add_tensor(input->name.str(), input->type.dtype, input->type.dims.size());
        } else if (const auto* state = op.get<State>()) {
          scope.add_tensor(state->name.str(), state->type.dtype, state->type.dims.size());
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

}  // namespace nautilus::spec
