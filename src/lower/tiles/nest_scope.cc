// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/nest_scope.h"

#include <algorithm>

#include "ir/decl.h"
#include "ir/target_of.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

NestScope::NestScope(const ir::Program& of, const Op& lowered, FreshNames& given_names,
                     expr::ExprPool& given_pool, std::string* reason)
    : program(of),
      target(ir::target_of(of)),
      nest(lowered),
      names(given_names),
      pool(given_pool),
      why(reason),
      tiles(given_names, given_pool) {
  for (const Op& op : of.body) {
    if (const auto* t = op.get<vrtile::Tensor>()) tensors.emplace(t->name.str(), t->type);
    if (const auto* f = op.get<ir::Fact>()) expr::assume_divisor(f->condition, divisors);
  }
}

std::nullopt_t NestScope::fail(std::string reason) const {
  if (why->empty()) *why = std::move(reason);
  return std::nullopt;
}

bool NestScope::refuse(std::string reason) const {
  fail(std::move(reason));
  return false;
}

const TileValue& NestScope::new_tile(ir::Name stem, const ir::TensorType& type) {
  TileValue value;
  value.name = new_register(stem.str(), type);
  value.type = type;
  tiles.define(stem, value);
  return *tiles.find(stem);
}

ir::Name NestScope::new_register(std::string_view stem, const ir::TensorType& type) {
  const ir::Name name = names.make(stem);
  declared.push_back(ir::make(matile::Tile{name, type, matile::Spread::Unset, {}}));
  return name;
}

ir::Axes NestScope::own_axes(const ir::TensorType& type) const {
  ir::Axes axes;
  for (size_t k = 0; k < type.dims.size(); ++k) axes.push_back({axis[k].name(), type.dims[k]});
  return axes;
}

ir::Axes NestScope::own_axes(const ir::Axes& axes) const {
  ir::Axes out;
  for (size_t k = 0; k < axes.size(); ++k) out.push_back({axis[k].name(), axes[k].extent});
  return out;
}

expr::Substitution NestScope::axes_to_own(const ir::Axes& axes) const {
  expr::Substitution out;
  for (size_t k = 0; k < axes.size(); ++k) out.emplace(pool.index(axes[k].name), axis[k]);
  return out;
}

bool NestScope::is_register_type(const ir::TensorType& type) {
  if (type.dims.size() == 2) return type.dtype == DType::F32 || is_half(type.dtype);
  return type.dims.size() == 1 && type.dtype == DType::F32;
}

bool NestScope::is_carried_type(const ir::TensorType& type) {
  return is_register_type(type) || (type.dims.size() == 2 && type.dtype == DType::I32);
}

void NestScope::copy(ir::Name to, const ir::TensorType& type, ir::Name from, ir::Block& out) const {
  const std::vector<Expr> own(axis, axis + type.dims.size());
  out.push_back(ir::make(matile::Set{to, own_axes(type), pool.read(from, type.dtype, own)}));
}

bool NestScope::reads_tile(Expr value, const ir::TensorType& type) const {
  bool found = false;
  expr::for_each(value, [&](Expr x) {
    if (x.op() != EK::Read || x.args().size() != type.dims.size()) return;
    bool same = is_declared(x.name(), type);
    for (size_t k = 0; k < type.dims.size(); ++k) same &= x[k] == axis[k];
    found |= same;
  });
  return found;
}

bool NestScope::is_declared(ir::Name name, const ir::TensorType& type) const {
  return std::any_of(declared.begin(), declared.end(), [&](const Op& op) {
    const auto& t = op.as<matile::Tile>();
    return t.name == name && t.type.dims == type.dims;
  });
}

TileElements NestScope::elements_of(const TileValue& load) const {
  return {&target.copies,
          load.value.name(),
          tensors.find(load.value.name().str())->second,
          {load.value.args().begin(), load.value.args().end()},
          load.axes,
          load.condition,
          &divisors};
}

bool NestScope::is_zero(Expr e) {
  return (e.op() == EK::FloatConst && e.number() == 0) ||
         (e.op() == EK::IntConst && e.integer() == 0);
}

}  // namespace nautilus::lower
