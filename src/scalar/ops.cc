// SPDX-License-Identifier: Apache-2.0
#include "scalar/ops.h"

namespace nautilus::scalar {

NAUT_DEFINE_OP(Buffer)
NAUT_DEFINE_OP(For)
NAUT_DEFINE_OP(Loop)
NAUT_DEFINE_OP(If)
NAUT_DEFINE_OP(Store)
NAUT_DEFINE_OP(Init)
NAUT_DEFINE_OP(Update)
NAUT_DEFINE_OP(UpdateArg)
NAUT_DEFINE_OP(Scatter)

const std::vector<std::string_view>& words(Role) {
  static const std::vector<std::string_view> spellings = {"input", "output", "temp", "local"};
  return spellings;
}

const std::vector<std::string_view>& words(LoopKind) {
  static const std::vector<std::string_view> spellings = {"map", "reduce", "grid", "group"};
  return spellings;
}

const std::vector<std::string_view>& words(Combine) {
  static const std::vector<std::string_view> spellings = {"kernel", "last"};
  return spellings;
}

const std::vector<std::string_view>& words(Direction) {
  static const std::vector<std::string_view> spellings = {"up", "down"};
  return spellings;
}

const ir::Level& level() {
  static const ir::Level kLevel{
      "scalar",
      ".scalar",
      {
#define OP(name) &name::info(),
#include "scalar/ops.def"
#undef OP
      },
      [](const ir::Op& op, expr::Scope& scope) {
        if (ir::declare_decl(op, scope)) return;
        if (const auto* b = op.get<Buffer>())
          scope.add_tensor(b->name.str(), b->type.dtype, b->type.dims.size());
      },
      [](const ir::OpInfo& info, const void* data, expr::Scope& scope) {
        if (&info != &Loop::info()) return;
        scope.add_var(static_cast<const Loop*>(data)->var.str(), ir::DType::I64);
      }};
  return kLevel;
}

Kind kind(const ir::Op& op) { return static_cast<Kind>(level().position_of(op)); }

std::map<std::string, ir::TensorType> buffers(const ir::Program& program, Role role) {
  std::map<std::string, ir::TensorType> out;
  for (const ir::Op& op : program.body) {
    const auto* b = op.get<Buffer>();
    if (b && b->role == role) out.emplace(b->name.str(), b->type);
  }
  return out;
}

}  // namespace nautilus::scalar
