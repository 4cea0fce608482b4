// SPDX-License-Identifier: Apache-2.0
#include "vrtile/ops.h"

namespace nautilus::vrtile {

NAUT_DEFINE_OP(Tensor)
NAUT_DEFINE_OP(Let)
NAUT_DEFINE_OP(Par)
NAUT_DEFINE_OP(For)
NAUT_DEFINE_OP(Carry)
NAUT_DEFINE_OP(Load)
NAUT_DEFINE_OP(Set)
NAUT_DEFINE_OP(Reduce)
NAUT_DEFINE_OP(Dot)
NAUT_DEFINE_OP(Store)

const std::vector<std::string_view>& words(TensorRole) {
  static const std::vector<std::string_view> spellings = {"input", "output", "temp"};
  return spellings;
}

const std::vector<std::string_view>& words(ParKind) {
  static const std::vector<std::string_view> spellings = {"grid", "group"};
  return spellings;
}

const std::vector<std::string_view>& words(Direction) {
  static const std::vector<std::string_view> spellings = {"up", "down"};
  return spellings;
}

const std::vector<std::string_view>& words(Trans) {
  static const std::vector<std::string_view> spellings = {"plain", "trans"};
  return spellings;
}

namespace {

ir::TensorType shaped(const ir::Axes& axes, ir::DType dtype) {
  ir::TensorType type{dtype, {}};
  for (const ir::Axis& a : axes) type.dims.push_back(a.extent);
  return type;
}

// Names for the text after an op.
void declare(const ir::Op& op, expr::Scope& scope) {
  if (ir::declare_decl(op, scope)) return;
  if (const auto* t = op.get<Tensor>())
    scope.add_tensor(t->name.str(), t->type.dtype, t->type.dims.size());
  if (const auto* l = op.get<Let>()) scope.add_var(l->name.str(), l->value.dtype());
  if (const ir::Name name = defined(op)) {
    const ir::TensorType type = type_of(op);
    scope.add_tensor(name.str(), type.dtype, type.dims.size());
  }
}

}  // namespace

ir::Name defined(const ir::Op& op) {
  if (const auto* x = op.get<Carry>()) return x->name;
  if (const auto* x = op.get<Load>()) return x->name;
  if (const auto* x = op.get<Set>()) return x->name;
  if (const auto* x = op.get<Reduce>()) return x->name;
  if (const auto* x = op.get<Dot>()) return x->name;
  return {};
}

ir::TensorType type_of(const ir::Op& op) {
  if (const auto* x = op.get<Carry>()) return x->type;
  if (const auto* x = op.get<Dot>()) return x->type;
  if (const auto* x = op.get<Load>()) return shaped(x->axes, x->value.dtype());
  if (const auto* x = op.get<Reduce>()) return shaped(x->axes, x->value.dtype());
  return shaped(op.as<Set>().axes, op.as<Set>().value.dtype());
}

const ir::Level& level() {
  static const ir::Level kLevel{"vrtile",
                                ".vrtile",
                                {
#define OP(name) &name::info(),
#include "vrtile/ops.def"
#undef OP
                                },
                                declare,
                                [](const ir::OpInfo& info, const void* data, expr::Scope& scope) {
                                  if (&info != &For::info()) return;
                                  scope.add_var(static_cast<const For*>(data)->var.str(),
                                                ir::DType::I64);
                                }};
  return kLevel;
}

Kind kind(const ir::Op& op) { return static_cast<Kind>(level().position_of(op)); }

std::map<std::string, ir::TensorType> tensors(const ir::Program& program, TensorRole role) {
  std::map<std::string, ir::TensorType> out;
  for (const ir::Op& op : program.body) {
    const auto* t = op.get<Tensor>();
    if (t && t->role == role) out.emplace(t->name.str(), t->type);
  }
  return out;
}

}  // namespace nautilus::vrtile
